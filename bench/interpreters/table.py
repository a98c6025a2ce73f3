"""The table of an interpreter of ONNX graphs: op -> function of a framework, called with the node's attributes, then its inputs."""


class Table:
    def __init__(self, framework):
        self.framework = framework
        self.calls = {"Identity": lambda attributes, x: x}
        # Names of ops whose constants after the first input are shapes, axes or indices, which become plain numbers of the traced program.
        self.shaped = set()

    def op(self, name, shaped=False):
        """Returns a decorator that registers a function for the op `name`."""

        def register(function):
            self.calls[name] = function
            if shaped:
                self.shaped.add(name)
            return function

        return register

    def simple(self, functions):
        """Registers functions that take only the node's inputs, by the name of their op."""
        for name, function in functions.items():
            self.calls[name] = lambda attributes, *inputs, function=function: function(*inputs)

    def check(self, model):
        missing = {node.op_type for node in model.graph.node} - set(self.calls) - {"Constant"}
        if missing:
            raise NotImplementedError(f"no {self.framework} call for {', '.join(sorted(missing))}")
