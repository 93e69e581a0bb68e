import torch
from matplotlib.figure import Figure

from attnlab.evaluation.heatmaps import draw
from attnlab.evaluation.plots import plot_side_by_side


def test_negative_weights_are_seen() -> None:
    positive, negative = torch.tensor([[0.9, 0.1]]), torch.tensor([[1.1, -0.1]])
    figure = plot_side_by_side({name: (one, ["a", "b"], ["c"]) for name, one in (("n", negative), ("p", positive))})
    first, second, scale = figure.axes
    assert (first.images[0].get_clim(), second.images[0].get_clim()) == ((-1.0, 1.0), (0.0, 1.0))
    assert scale.get_ylim() == (-1.0, 1.0)


def test_tokens_label_the_axes_and_gold_links_are_marked() -> None:
    weights = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
    axes = Figure().add_subplot()
    draw(axes, weights, ["ein", "Hündchen", "</s>"], ["a", "puppy"], gold=[(1, 1), (9, 9)])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["ein", "Hündchen", "</s>"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "puppy"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("source", "hypothesis")
    torch.testing.assert_close(torch.tensor(axes.images[0].get_array().data), weights)
    (rings,) = axes.collections
    assert rings.get_offsets().tolist() == [[1.0, 1.0]]
