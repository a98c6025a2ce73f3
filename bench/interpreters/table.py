"""The table of an interpreter of ONNX graphs: op -> call of a framework, with the node's attributes before its inputs."""


class Table:
    def __init__(self, framework):
        self.framework = framework
        self.calls = {"Identity": lambda attributes, x: x}
        # Ops whose constants after the first input are shapes, axes and indices: they become numbers of the program.
        self.shaped = set()

    def op(self, name, shaped=False):
        """Adds the function below it."""

        def register(function):
            self.calls[name] = function
            if shaped:
                self.shaped.add(name)
            return function

        return register

    def simple(self, functions):
        """Adds functions of the inputs alone, by name."""
        for name, function in functions.items():
            self.calls[name] = lambda attributes, *inputs, function=function: function(*inputs)

    def check(self, model):
        missing = {node.op_type for node in model.graph.node} - set(self.calls) - {"Constant"}
        if missing:
            raise NotImplementedError(f"no {self.framework} call for {', '.join(sorted(missing))}")
