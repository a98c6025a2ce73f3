"""Views where kernels end: which are PyTorch's, of what kernels compute, so that strides and storage are those of eager."""

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
    """Gives every user that kernels do not have (`taken` says so of a node) a view of its own, outside of them, in place of one inside.
    A kernel that computed the view would give it a storage of its own. It does so only where the views that leave show less than is
    computed otherwise, as the last of many rows."""
    leaving = {}  # by what is viewed: the views that leave
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
    """What a view shows in the end."""
    while taken(node) and _is_view(node):
        node = node.args[0]
    return node


def _copied(graph, view, taken, copies):
    """A view as another node, of what it shows."""
    if not (taken(view) and _is_view(view)):
        return view
    if view not in copies:
        shown = _copied(graph, view.args[0], taken, copies)
        with graph.inserting_after(view):
            copies[view] = graph.node_copy(view, lambda node: shown if node is view.args[0] else node)
    return copies[view]
