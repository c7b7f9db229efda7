"""Evaluates a classifier with onnxruntime: accuracy, confusions, the least certain images, latency.

This is how such scripts are written; nothing in it knows of Caesura. Its test runs it as it stands, and once more with
its import changed.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime as ort


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("samples", type=Path, help="an .npz file with the arrays input and label")
    parser.add_argument("--count", type=int, default=6)
    parser.add_argument("--top", type=int, default=3)
    parser.add_argument("--out", type=Path, help="where to write all scores")
    return parser.parse_args()


def open_session(path):
    """One thread, and operators as the model has them."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), sess_options=options, providers=ort.get_available_providers())


def describe(session):
    for kind, ports in (("input", session.get_inputs()), ("output", session.get_outputs())):
        for port in ports:
            print(f"{kind} {port.name}: {port.type} {list(port.shape)}")
    if not session.get_providers():
        sys.exit("nothing can run this model")


def softmax(scores):
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def classify(session, images):
    """Scores of all images, and how long each took."""
    given, made = session.get_inputs()[0], session.get_outputs()[0]
    quiet = ort.RunOptions()
    quiet.log_severity_level = 3
    scores, seconds = [], []
    session.run([made.name], {given.name: images[:1].reshape(given.shape)}, quiet)  # warm up
    for image in images:
        begin = time.perf_counter()
        (found,) = session.run([made.name], {given.name: image.reshape(given.shape)}, run_options=quiet)
        seconds.append(time.perf_counter() - begin)
        scores.append(found[0])
    return np.stack(scores), np.array(seconds)


def confusions(predicted, labels):
    table = np.zeros((10, 10), int)
    np.add.at(table, (labels, predicted), 1)
    return [(label, guess, table[label, guess]) for label, guess in np.argwhere(table) if label != guess]


def refusals(session):
    """What a service does with requests that are wrong: it answers, and goes on."""
    given = session.get_inputs()[0]
    for feed in ({}, {"nothing": np.zeros(given.shape, np.float32)}):
        try:
            session.run(None, feed)
        except ValueError as error:
            yield f"refused: {given.name in str(error)}"
        else:
            yield "took what it should refuse"


def main():
    arguments = parse_arguments()
    session = open_session(arguments.model)
    describe(session)
    with np.load(arguments.samples) as held:
        images, labels = held["input"][: arguments.count].astype(np.float32), held["label"][: arguments.count]
    scores, seconds = classify(session, images)
    predicted = scores.argmax(axis=-1)
    print(f"accuracy {np.mean(predicted == labels):.1%} of {len(labels)}")
    for label, guess, count in confusions(predicted, labels):
        print(f"{label} taken for {guess}: {count}")
    for place in np.argsort(softmax(scores).max(axis=-1))[: arguments.top]:
        best = np.argsort(-scores[place], kind="stable")[: arguments.top]
        print(f"image {place}: " + ", ".join(f"{digit} {scores[place][digit]:.3f}" for digit in best))
    everything = session.run(None, {session.get_inputs()[0].name: images[-1].reshape(session.get_inputs()[0].shape)})
    print(f"outputs {len(everything)}, equal to the last: {np.array_equal(everything[0][0], scores[-1])}")
    print(*refusals(session), sep="\n")
    print(f"latency ms: p50 {1e3 * np.median(seconds):.2f}, worst {1e3 * seconds.max():.2f}", file=sys.stderr)
    if arguments.out:
        np.savez(arguments.out, scores=scores)


if __name__ == "__main__":
    main()
