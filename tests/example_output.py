"""How the output of examples is compared."""

import doctest
import re


class AnyZero(doctest.OutputChecker):
    """Takes -0. for 0.: the sign of a sum that vanishes depends on the instruction set."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        def unsigned(text: str) -> str:
            return re.sub(r"([ \[]|^)-(0\.[j, \])])", r"\1\2", re.sub(r"-(0\.j)", r"+\1", text))

        return super().check_output(unsigned(want), unsigned(got), optionflags)
