"""Makes scikit-learn.json: the figures of scikit-learn for pairs of raters and for scores with labels.

Run: pip install scikit-learn, then python scikit-learn.py > scikit-learn.json
"""

import json
import math
import random
import warnings

import sklearn
from sklearn import metrics

warnings.simplefilter("ignore")
draw = random.Random(20260131)


def number(value):
    """NaN and infinity, for a figure that is undefined, become null."""
    value = float(value)
    return value if math.isfinite(value) else None


def raters(name, grades, first, second):
    """Grades are whole numbers at equal distances, all of which scikit-learn gets."""
    return {
        "name": name,
        "first": first,
        "second": second,
        "kappa": number(metrics.cohen_kappa_score(first, second)),
        "quadraticKappa": number(
            metrics.cohen_kappa_score(first, second, labels=list(grades), weights="quadratic")
        ),
        "exact": number(metrics.accuracy_score(first, second)),
        "meanDifference": sum(b - a for a, b in zip(first, second)) / len(first),
    }


def noisy(grades, count, share):
    first = [draw.choice(grades) for _ in range(count)]
    second = [draw.choice(grades) if draw.random() < share else one for one in first]
    return first, second


def labelled(name, scores, labels, threshold):
    predicted = [score >= threshold for score in scores]
    (tn, fp), (fn, tp) = metrics.confusion_matrix(labels, predicted, labels=[False, True]).tolist()
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        labels, predicted, labels=[True], zero_division=float("nan")
    )
    specificity = metrics.recall_score(
        labels, predicted, pos_label=False, zero_division=float("nan")
    )
    case = {
        "name": name,
        "scores": scores,
        "labels": labels,
        "threshold": threshold,
        "truePositives": tp,
        "falsePositives": fp,
        "falseNegatives": fn,
        "trueNegatives": tn,
        "accuracy": number(metrics.accuracy_score(labels, predicted)),
        "precision": number(precision[0]),
        "recall": number(recall[0]),
        "specificity": number(specificity),
        "f1": number(f1[0]),
        "separation": None,
    }
    if len(set(labels)) == 2:
        false_rate, true_rate, thresholds = metrics.roc_curve(
            labels, scores, drop_intermediate=False
        )
        index = [round(t - f, 12) for t, f in zip(true_rate, false_rate)]
        case["separation"] = {
            "rocAuc": number(metrics.roc_auc_score(labels, scores)),
            "bestThreshold": number(thresholds[index.index(max(index))]),
        }
    return case


def drawn(count, levels, overlap):
    labels = [draw.random() < 0.4 for _ in range(count)]
    scores = [
        round(min(1, max(0, draw.gauss(0.5 + (0.5 - overlap) * (1 if one else -1), 0.25))) * levels)
        / levels
        for one in labels
    ]
    return scores, labels


print(
    json.dumps(
        {
            "source": f"scikit-learn {sklearn.__version__}, by scikit-learn.py",
            "raters": [
                raters("two scores", (0, 1), *noisy((0, 1), 40, 0.3)),
                raters("one rater says the same of all", (0, 1), [1] * 6, [1, 0, 1, 1, 0, 1]),
                raters("both say the same of all", (0, 1), [1, 1, 1], [1, 1, 1]),
                raters("nothing in common", (0, 1), [0, 1, 0, 1], [1, 0, 1, 0]),
                raters("five grades", range(1, 6), *noisy(range(1, 6), 60, 0.5)),
                raters("eleven grades", range(11), *noisy(range(11), 80, 0.4)),
                raters("a grade that nobody gives", range(1, 6), [1, 2, 5, 5, 1], [1, 1, 5, 3, 2]),
            ],
            "labelled": [
                labelled("scores of two values", [1.0, 0.0, 1.0, 1.0, 0.0, 0.0], [True, False, False, True, True, False], 0.5),
                labelled("eleven grades", *drawn(80, 10, 0.2), 0.5),
                labelled("another threshold", *drawn(80, 10, 0.2), 0.8),
                labelled("scores without ties", *drawn(60, 1_000_000, 0.3), 0.5),
                labelled("scores that say nothing", [0.5, 0.5, 0.5, 0.5], [True, False, True, False], 0.5),
                labelled("scores that are upside down", [0.1, 0.9, 0.2, 0.8], [True, False, True, False], 0.5),
                labelled("nothing reaches the threshold", [0.1, 0.2, 0.3], [True, False, True], 0.5),
                labelled("all are right", [0.1, 0.9, 0.8], [True, True, True], 0.5),
                labelled("all are wrong", [0.1, 0.9, 0.8], [False, False, False], 0.5),
            ],
        },
    )
)
