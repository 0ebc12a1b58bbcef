"""How can `minimal.train` be a command's module and the function of that name?"""

import inspect
import sys
import types


class CallableModule(types.ModuleType):
    """A module that is called as the function that bears its name."""

    def __call__(self, *given, **named):
        return self.called(*given, **named)


def call_as(function):
    """Decorate the function of a module that bears the module's name. The module's attribute on
    its package is the module, whoever imports it and when; so it is the module that is called."""
    module = sys.modules[function.__module__]
    if function.__module__ != "__main__":
        module.__class__ = CallableModule
        module.called = function
        module.__signature__ = inspect.signature(function)
    return function
