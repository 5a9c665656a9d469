"""Models from a local folder."""

import hashlib
import sys

import pytest

import facula


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "beside.py").write_text("SIZE = 4\n")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['facula']\n"
        "from beside import SIZE\n"
        "def ones(n=SIZE, scale=1):\n"
        "    'Ones, scaled.'\n"
        "    import facula\n"
        "    return facula.ones(n) * scale\n"
        "def _hidden():\n"
        "    pass\n"
    )
    return tmp_path


def test_functions_of_a_folder(folder):
    assert facula.hub.list(folder, source="local") == ["ones"]
    assert facula.hub.help(folder, "ones", source="local") == "Ones, scaled."
    assert facula.hub.load(folder, "ones", scale=2, source="local").tolist() == [2, 2, 2, 2]


def test_functions_import_what_lies_beside_them_when_they_are_called(folder):
    (folder / "asked_for_late.py").write_text("SIZE = 6\n")
    (folder / "hubconf.py").write_text(
        "dependencies = ['asked_for_late']\n"
        "def size():\n"
        "    from asked_for_late import SIZE\n"
        "    return SIZE\n"
    )
    before = list(sys.path)
    assert facula.hub.load(folder, "size", source="local") == 6
    assert sys.path == before


def test_what_cannot_be_loaded_is_named(folder, tmp_path):
    with pytest.raises(RuntimeError, match="Cannot find callable twos in hubconf; there are: ones"):
        facula.hub.load(folder, "twos", source="local")
    with pytest.raises(RuntimeError, match="downloads nothing"):
        facula.hub.load("pytorch/vision", "resnet18")
    with pytest.raises(ValueError, match="Unknown source"):
        facula.hub.load(folder, "ones", source="elsewhere")
    with pytest.raises(FileNotFoundError, match=r"hubconf\.py"):
        facula.hub.load(tmp_path / "none", "ones", source="local")
    (folder / "hubconf.py").write_text("dependencies = ['surely_not_installed']\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: surely_not_installed"):
        facula.hub.list(folder, source="local")


def test_checkpoints_of_files_and_folders(tmp_path, monkeypatch):
    plain = tmp_path / "w.pt"
    facula.save({"w": facula.ones(2)}, plain)
    digest = hashlib.sha256(plain.read_bytes()).hexdigest()
    named = tmp_path / f"w-{digest[:8]}.pt"
    plain.rename(named)
    url = f"file://{named}"
    assert facula.hub.load_state_dict_from_url(url, check_hash=True)["w"].tolist() == [1, 1]
    wrong = tmp_path / "w-0123abcd.pt"
    facula.hub.download_url_to_file(url, str(wrong), hash_prefix=digest[:8])
    with pytest.raises(RuntimeError, match="invalid hash value"):
        facula.hub.load_state_dict_from_url(f"file://{wrong}", check_hash=True)
    with pytest.raises(RuntimeError, match="downloads nothing"):
        facula.hub.load_state_dict_from_url("https://example.com/model.pt")
    found = facula.hub.load_state_dict_from_url(
        "https://example.com/model.pt", model_dir=str(tmp_path), file_name=named.name
    )
    assert found["w"].tolist() == [1, 1]


def test_the_folder_of_the_hub(tmp_path, monkeypatch):
    monkeypatch.setenv("FACULA_HOME", str(tmp_path))
    assert facula.hub.get_dir() == str(tmp_path / "hub")
    monkeypatch.setattr(facula.hub, "_folder", None)
    facula.hub.set_dir(tmp_path / "other")
    assert facula.hub.get_dir() == str(tmp_path / "other")
