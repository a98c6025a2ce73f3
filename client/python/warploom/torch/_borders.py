"""Views at the borders between kernels and eager. A view that is used outside the kernels is made by PyTorch from the kernels' result, so
that its strides and storage are those of eager."""

import operator

import torch

aten = torch.ops.aten


def _is_view(node):
    if node.target is operator.getitem:
        return _is_view(node.args[0])
    return isinstance(node.target, torch._ops.OpOverload) and node.target.is_view and isinstance(node.args[0], torch.fx.Node)


def _elements(node):
    value = node.meta.get("val")
    return value.numel() if isinstance(value, torch.Tensor) else 0


def views_outside(graph, taken):
    """Makes users outside the kernels use views that PyTorch makes, because a view that a kernel computes has a storage of its own. `taken`
    says whether a node is in a kernel. Views of a tensor stay in the kernels if those that are used outside together show fewer elements
    than the tensor, such as the last of many rows, and the tensor itself is not used outside."""
    leaving = {}  # for each tensor, its views that are used outside the kernels
    for node in graph.nodes:
        if taken(node) and _is_view(node) and not _is_tuple(node) and any(not taken(user) for user in node.users):
            leaving.setdefault(_viewed(node, taken), []).append(node)
    copies = {}
    for root, views in leaving.items():
        whole = not taken(root) or any(not taken(user) for user in root.users) or sum(map(_elements, views)) >= _elements(root)
        for view in views:
            users = [user for user in view.users if not taken(user)]
            for user in users if whole else [user for user in users if user.target is aten.as_strided.default]:
                user.replace_input_with(view, _copied(graph, view, taken, copies))


def _is_tuple(node):
    return not isinstance(node.meta.get("val"), torch.Tensor)


def _viewed(node, taken):
    """Returns the first node of a chain of views in kernels: the tensor that is viewed."""
    while taken(node) and _is_view(node):
        node = node.args[0]
    return node


def _copied(graph, view, taken, copies):
    """Returns a copy of the chain of views that ends with `view`, as nodes outside the kernels. `copies`: the copies made before, by
    view."""
    if not (taken(view) and _is_view(view)):
        return view
    if view not in copies:
        shown = _copied(graph, view.args[0], taken, copies)
        with graph.inserting_after(view):
            copies[view] = graph.node_copy(view, lambda node: shown if node is view.args[0] else node)
    return copies[view]
