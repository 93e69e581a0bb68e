import torch

from attnlab.evaluation.heatmaps import heatmap


def test_tokens_label_the_axes_and_gold_links_are_marked() -> None:
    weights = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
    figure = heatmap(weights, ["ein", "Hündchen", "</s>"], ["a", "puppy"], title="dot", gold=[(1, 1), (9, 9)])
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["ein", "Hündchen", "</s>"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "puppy"]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("source", "hypothesis", "dot")
    torch.testing.assert_close(torch.tensor(axes.images[0].get_array().data), weights)
    (rings,) = axes.collections
    assert rings.get_offsets().tolist() == [[1.0, 1.0]]
