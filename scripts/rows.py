#!/usr/bin/env python3
"""Whether a row of a report denies itself: scripts/rows.py DIR...

Of each row that is compared, in report.json, report.csv and the page: its value divided by that of its baseline is its
ratio, or the inverse where lower is better, and so is its CPU time. In the page also the rounded numbers that a reader
divides, and bars, also those of the pictures: none is longer than that of a row with a larger value, and one that is cut
says so. `scripts/recompute` calls it, too. Exit status 1 if a row denies itself.
"""

import csv
import html.parser
import json
import os
import re
import sys

# Differences of exact numbers, relative.
EXACT = 1e-6
# Bars have one decimal, in percent of the longest.
BAR = 0.11
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


class Page(html.parser.HTMLParser):
    """The rows of all lists: by address, the fields with their texts and the length of their bar; and the pictures, of
    each row the value and the length of its bar.
    """

    def __init__(self, text):
        super().__init__()
        self.rows, self.row, self.field, self.part = {}, None, None, None
        self.pictures, self.drawn = [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        classes = (attrs.get("class") or "").split()
        if tag == "svg":
            self.drawn = None
            if "chart" in classes:
                self.pictures.append([])
        elif tag == "g" and self.pictures:
            self.drawn = {"text": ""}
            self.pictures[-1].append(self.drawn)
        elif self.drawn is not None and tag in ("text", "rect", "path"):
            self.drawn["is_value"] = "value" in classes and not self.drawn["text"]
            if "size" in classes:
                self.drawn["length"] = float(attrs["width"])
            self.drawn["is_cut"] = self.drawn.get("is_cut", False) or "gap" in classes
        if tag == "tr":
            self.row = self.rows.setdefault(attrs["id"], []) if attrs.get("id") else None
        elif tag == "td" and self.row is not None:
            self.field = {"name": attrs.get("data-l"), "classes": classes, "v": "", "sub": ""}
            self.row.append(self.field)
        elif tag == "span" and self.field is not None and self.part is None:
            self.part = next((name for name in ("v", "sub") if name in classes), None)
        elif tag == "i" and "bar" in classes and self.field is not None:
            self.field["bar"] = float(attrs["style"].removeprefix("--v:").rstrip("%"))

    def handle_endtag(self, tag):
        if tag in ("td", "tr"):
            self.field = None
        if tag in ("span", "td"):
            self.part = None
        if tag == "svg":
            self.drawn = None

    def handle_data(self, text):
        if self.drawn and self.drawn.get("is_value"):
            self.drawn["text"] += text
            self.drawn["is_value"] = False
        if self.field is not None and self.part:
            self.field[self.part] += text


def shown(text):
    """The first number of a text, as the interval of all numbers that are rounded to it; None without one."""
    found = NUMBER.search(text)
    if not found:
        return None
    digits = found.group().replace(",", "")
    value, plain = float(digits), digits.split("e")[0].lstrip("-")
    decimals = len(plain.split(".")[1]) if "." in plain else 0
    # Whole numbers are rounded to three digits at least.
    zeros = 0 if decimals else min(len(plain) - len(plain.rstrip("0")), max(0, len(plain) - 3))
    unit = 10.0 ** (zeros - decimals) * (10.0 ** int(digits.split("e")[1]) if "e" in digits else 1.0)
    factor = 1e-3 if "Mbit/s" in text else 1.0
    return (value - unit / 2) * factor, (value + unit / 2) * factor


def share(text):
    """As `shown`, of a percentage or a multiple."""
    ends = shown(text)
    return ends and tuple(end / (1.0 if re.search(r"\dx", text) else 100.0) for end in ends)


def more(text):
    """As `shown`, of a change such as +38 %, or of a factor: the one value by the other."""
    ends = shown(text)
    return ends and tuple(end if re.search(r"\dx", text) else 1 + end / 100.0 for end in ends)


def is_cost(name):
    """Whether a metric is what an operation takes, so that a row has a change of it and no performance."""
    return any(word in name for word in ("latency", "microseconds", "CPU", "MiB of memory"))


def divides(value, baseline, ratio, is_inverse):
    """Whether some numbers that are rounded to these three are a row."""
    if None in (value, baseline, ratio) or min(value[0], baseline[0], ratio[0]) <= 0:
        return True
    low, high = value[0] / baseline[1], value[1] / baseline[0]
    if is_inverse:
        low, high = 1 / high, 1 / low
    return low <= ratio[1] * (1 + EXACT) and high >= ratio[0] * (1 - EXACT)


def is_near(one, two):
    return abs(one - two) <= EXACT * max(abs(one), abs(two))


def anchor(*parts):
    return re.sub(r"\s", "_", ".".join(parts)).replace("%", "percent")


def micros(cpu):
    return cpu.get("us_per_op", cpu.get("us_per_mb"))


def of_json(table, entry, others):
    """What is wrong with a row in report.json. `others`: the rows of the table by the same metric, by id."""
    compared, value = entry["vs_baseline"], entry["value"]
    baseline, ratio = compared["with_value"], compared["ratio"]
    is_lower = table["better"] == "lower" if entry.get("metric") == table["cells"][0].get("metric") else None
    wanted = [baseline * ratio, baseline / ratio]
    wanted = wanted if is_lower is None else [wanted[is_lower]]
    if not any(is_near(value, one) for one in wanted):
        yield "its value is %g, that of the baseline by the ratio %g" % (value, wanted[0])
    other = others.get(compared["with"])
    if other and other["value"] is not None and not is_near(other["value"], baseline):
        yield "its baseline has %g, and %g in its own row" % (baseline, other["value"])
    cpu, duet = entry.get("cpu"), compared.get("duet") or {}
    if cpu and duet.get("cpu_ratio") and duet.get("with_cpu_us"):
        if not is_near(micros(cpu), duet["with_cpu_us"] * duet["cpu_ratio"]):
            yield "its CPU time is %g, that of the baseline by the ratio another" % micros(cpu)
        if other and other.get("cpu") and not is_near(micros(other["cpu"]), duet["with_cpu_us"]):
            yield "its baseline has a CPU time of %g, and %g in its own row" % (duet["with_cpu_us"], micros(other["cpu"]))


def without_time(name):
    """A label without its unit of times: a column of the page has the one that fits."""
    return re.sub(" latency, (µs|ms|s)$", " latency", name or "")


def field(row, name=None, of_class=None):
    """A field of a row in the page; without a name that of the value."""
    for one in row or []:
        is_it = without_time(one["name"]) == without_time(name) and one["classes"] != ["none"]
        if of_class in one["classes"] if of_class else is_it:
            return one
    return {"v": "", "sub": ""}


def of_page(page, prefix, table, entry, others):
    """What is wrong with a row in the page."""
    compared = entry["vs_baseline"]
    ids = [anchor(*prefix, id) for id in (entry["id"], compared["with"])]
    rows = [page.rows.get(id) for id in ids]
    # The baseline of a row may be in another table of the suite.
    if compared["with"] not in others:
        return
    if None in rows:
        yield "it or its baseline is not in the page"
        return
    is_first = entry.get("metric") == table["cells"][0].get("metric")
    ratio, is_lower = compared["ratio"], table["better"] == "lower"
    if is_first:
        values, shares = [first_value(row) for row in rows], field(rows[0], of_class="ratio")["v"]
        bars = [value.get("bar") for value in values]
        # A row with a larger value has the longer bar.
        is_longer = (ratio < 1) == is_lower
        if None not in bars and (bars[0] - bars[1]) * (1 if is_longer else -1) < -BAR and ratio != 1:
            yield "its bar has %g %%, that of its baseline %g %%, at a ratio of %g" % (*bars, ratio)
    else:
        is_lower = not is_near(entry["value"], compared["with_value"] * ratio)
        values = [field(row, entry["metric"]) for row in rows]
        shares = values[0]["sub"]
    of_cost = is_cost(entry.get("metric") or table["unit"])
    # Beside nothing in its place a row has a change of the performance.
    is_change = re.match(r"[+-]|0\.0 %", shares or "")
    wanted = (more(shares), is_lower and not of_cost) if of_cost or is_change else (share(shares), is_lower)
    if not divides(*(shown(value["v"]) for value in values), *wanted):
        yield "it shows %s, its baseline %s, and %s" % (values[0]["v"], values[1]["v"], shares)
    cpu = [field(row, of_class="c-cpu") for row in rows]
    if is_first and cpu[0]["sub"] and not divides(*(shown(one["v"]) for one in cpu), more(cpu[0]["sub"]), False):
        yield "it shows a CPU time of %s, its baseline %s, and %s" % (cpu[0]["v"], cpu[1]["v"], cpu[0]["sub"])


def first_value(row):
    """The field of the value: the first that has no class and is no tier."""
    return next((one for one in row if not one["classes"] and one["name"] != "tier"), {"v": ""})


def order_of_bars(page, prefix, table):
    """Bars of a table against its values."""
    first = [entry for entry in table["cells"] if entry.get("metric") == table["cells"][0].get("metric")]
    rows = [(entry, page.rows.get(anchor(*prefix, entry["id"]))) for entry in first]
    bars = [(e["value"], first_value(row).get("bar"), e["id"]) for e, row in rows if row and e["value"] is not None]
    bars = sorted(bar for bar in bars if bar[1] is not None)
    for (_, one, _), (_, other, id) in zip(bars, bars[1:]):
        if one > other + BAR:
            yield id, "its bar has %g %%, and one of %g %% belongs to a smaller value" % (other, one)


def of_pictures(page):
    """Bars of pictures against the values beside them; a bar that is cut has no length."""
    for picture in page.pictures:
        bars = [(shown(row["text"]), row["length"], row["text"]) for row in picture if "length" in row and not row["is_cut"]]
        bars = sorted(bar for bar in bars if bar[0])
        for (smaller, one, text), (larger, other, of) in zip(bars, bars[1:]):
            if smaller[1] < larger[0] and one > other + BAR:
                yield "a picture", "the bar of %s has %g, and that of %s %g" % (text, one, of, other)
        longest = max(bars, default=None)
        if longest and longest[0][0] > 0:
            for value, length, text in bars:
                if length > 1 and abs(length / longest[1] - sum(value) / sum(longest[0])) > 0.01:
                    yield "a picture", "the bar of %s has %g, and that of %s %g" % (text, length, longest[2], longest[1])


def of_csv(folder):
    """What is wrong with rows of report.csv."""
    with open(os.path.join(folder, "report.csv"), newline="") as file:
        rows = {(row["suite"], row["cell"]): row for row in csv.DictReader(file)}
    for (suite, id), row in rows.items():
        other = rows.get((suite, row["baseline"]))
        # A cell may be a baseline in one table and a row in another, whose value the file has.
        if not other or not row["value"] or not other["value"] or other["ratio"] or other["unit"] != row["unit"]:
            continue
        quotient, ratio = float(row["value"]) / float(other["value"]), float(row["ratio"])
        if not is_near(quotient, ratio) and not is_near(1 / quotient, ratio):
            yield "%s:%s" % (suite, id), "its values in report.csv divide to %g, and its ratio is %g" % (quotient, ratio)


def check(folder):
    """Prints each fault; returns their number and that of the rows."""
    with open(os.path.join(folder, "report.json")) as file:
        report = json.load(file)
    with open(os.path.join(folder, "report.html")) as file:
        page = Page(file.read())
    faults, count = [*of_csv(folder), *of_pictures(page)], 0
    for suite in report["suites"]:
        for table in suite["tables"]:
            prefix = (suite["name"], table["name"])
            place = "%s:%%s in %s" % prefix
            if table["cells"]:
                faults += [(place % id, fault) for id, fault in order_of_bars(page, prefix, table)]
            for entry in table["cells"]:
                if entry["value"] is None or (entry["vs_baseline"] or {}).get("with_value") is None:
                    continue
                others = {one["id"]: one for one in table["cells"] if one.get("metric") == entry.get("metric")}
                count += 1
                found = [*of_json(table, entry, others), *of_page(page, prefix, table, entry, others)]
                faults += [(place % entry["id"], fault) for fault in found]
    for place, fault in faults:
        print("%s: %s: %s" % (folder, place, fault))
    return len(faults), count


def main(folders):
    if not folders or "-h" in folders or "--help" in folders:
        print(__doc__.strip())
        return 0 if folders else 2
    faults = 0
    for folder in folders:
        found, count = check(folder)
        faults += found
        print("%s: %d of %d rows deny themselves" % (folder, found, count))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
