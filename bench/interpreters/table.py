"""The table of an interpreter of ONNX graphs: op -> function of a framework, called with the node's attributes, then its inputs."""


class Table:
    def __init__(self, framework):
        self.framework = framework
        self.calls = {"Identity": lambda attributes, x: x}
        # Ops whose constants after the first input are shapes, axes and indices: they become numbers of the program.
        self.shaped = set()

    def op(self, name, shaped=False):
        """A decorator that adds the function of an op."""

        def register(function):
            self.calls[name] = function
            if shaped:
                self.shaped.add(name)
            return function

        return register

    def simple(self, functions):
        """Adds functions by name of the op that take only the inputs."""
        for name, function in functions.items():
            self.calls[name] = lambda attributes, *inputs, function=function: function(*inputs)

    def check(self, model):
        missing = {node.op_type for node in model.graph.node} - set(self.calls) - {"Constant"}
        if missing:
            raise NotImplementedError(f"no {self.framework} call for {', '.join(sorted(missing))}")
