#include "core/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/error.h"

namespace facula {
namespace {

// What a storage in shared memory keeps as its context.
struct SharedFile {
  int descriptor;
  Storage* former;  // memory that others point into, where the storage was before; may be null
};

SharedFile* file_of(const Storage* s) {
  return static_cast<SharedFile*>(s->context);
}

void release_shared(Storage* s) {
  munmap(s->data, s->nbytes);
  SharedFile* file = file_of(s);
  close(file->descriptor);
  if (file->former) file->former->unref();
  delete file;
}

int open_unnamed() {
#ifdef __linux__
  return memfd_create("facula", MFD_CLOEXEC);
#else
  static std::atomic<int> count{0};
  char name[32];
  std::snprintf(name, sizeof name, "/facula%d.%d", int(getpid()), count++);
  int descriptor = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (descriptor >= 0) shm_unlink(name);
  return descriptor;
#endif
}

// Each shared storage takes a descriptor; the soft limit is often lower than what is allowed.
bool raise_descriptor_limit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

void* map(int descriptor, size_t nbytes) {
  void* data = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return data == MAP_FAILED ? nullptr : data;
}

}  // namespace

int make_shared_file(size_t nbytes) {
  int descriptor = open_unnamed();
  if (descriptor < 0 && errno == EMFILE && raise_descriptor_limit()) descriptor = open_unnamed();
  if (descriptor < 0 || ftruncate(descriptor, off_t(nbytes)) != 0) {
    const int error = errno;
    if (descriptor >= 0) close(descriptor);
    runtime_error("the system gives no ", nbytes, " bytes to be shared: ", std::strerror(error));
  }
  return descriptor;
}

int shared_descriptor(const Storage& s) {
  return s.data && s.release == release_shared ? file_of(&s)->descriptor : -1;
}

Storage* map_shared(int descriptor, size_t nbytes) {
  struct stat info;
  // Memory past the end of the file would be there only until it is touched.
  const bool fits = fstat(descriptor, &info) == 0 && size_t(info.st_size) >= nbytes;
  void* data = fits && nbytes ? map(descriptor, nbytes) : nullptr;
  if (!data) {
    close(descriptor);
    runtime_error("cannot map ", nbytes, " bytes of another process's memory");
  }
  return borrow_storage(data, nbytes, Device{}, release_shared,
                        new SharedFile{descriptor, nullptr});
}

bool Storage::is_shared() const {
  return device.is_cuda() || (data && release == release_shared);
}

void Storage::share() {
  if (!device.is_cpu() || nbytes == 0 || is_shared()) return;
  const int descriptor = make_shared_file(nbytes);
  void* fresh = map(descriptor, nbytes);
  if (!fresh) {
    close(descriptor);
    runtime_error("the system gives no ", nbytes, " bytes to be shared");
  }
  std::memcpy(fresh, data, nbytes);
  // Arrays that share the memory keep this storage, not the memory: it has to stay where they look.
  Storage* former = borrow_storage(data, nbytes, device, release, context);
  if (resizable) former->unref(), former = nullptr;
  data = fresh;
  release = release_shared;
  context = new SharedFile{descriptor, former};
  resizable = false;
}

}  // namespace facula
