//! An axis: from values to places in the drawing, with round ticks and their labels.

/// Linear or logarithmic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    /// Values.
    from: f64,
    to: f64,
    is_log: bool,
    /// Places in the drawing.
    start: f64,
    end: f64,
}

/// The text of a tick, at its place in the drawing.
#[derive(Debug)]
pub(crate) struct Label<'a> {
    pub(crate) x: f64,
    pub(crate) anchor: &'static str,
    pub(crate) text: &'a str,
}

/// The least room between two labels.
const GAP: f64 = 4.0;

/// From this ratio of the largest to the smallest value an axis is logarithmic.
const LOG_FROM: f64 = 10.0;

impl Axis {
    pub(crate) fn log(from: f64, to: f64, start: f64, end: f64) -> Self {
        Self { from, to, is_log: true, start, end }
    }

    pub(crate) fn linear(from: f64, to: f64, start: f64, end: f64) -> Self {
        Self { from, to, is_log: false, start, end }
    }

    /// Linear from 0 where the values are of one size, else logarithmic. `None` without a value above 0.
    pub(crate) fn fitting(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Option<Self> {
        let sound = values.filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = sound.fold(None, |range: Option<(f64, f64)>, value| {
            Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        })?;
        let is_log = high / low > LOG_FROM;
        let (from, to) = if is_log { (low / 1.05, high * 1.05) } else { (0.0, high * 1.05) };
        to.is_finite().then_some(Self { from, to, is_log, start, end })
    }

    /// The values at both ends.
    pub(crate) fn ends(&self) -> [f64; 2] {
        [self.from, self.to]
    }

    pub(crate) fn contains(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }

    /// The place of a value; values beyond the ends are at the ends.
    pub(crate) fn x(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.ln() - self.from.ln()) / (self.to.ln() - self.from.ln())
        } else {
            (value - self.from) / (self.to - self.from)
        };
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self.start + share * (self.end - self.start)
    }

    /// About `wanted` round values: multiples of 1, 2 or 5 times a power of ten; on a logarithmic axis 1, 2
    /// and 5 times each power, or each power, or some.
    pub(crate) fn ticks(&self, wanted: i32) -> Vec<f64> {
        let within = |tick: &f64| (self.from * 0.9999..=self.to * 1.0001).contains(tick);
        if !self.is_log {
            let step = round_up(self.to / f64::from(wanted));
            return (0..=wanted).map(|i| step * f64::from(i)).filter(within).collect();
        }
        // Of 0 and of infinity there is no power.
        let power = |value: f64| value.log10().clamp(f64::from(f64::MIN_10_EXP), f64::from(f64::MAX_10_EXP));
        let (first, last) = (power(self.from).floor() as i32, power(self.to).ceil() as i32);
        let of = |digits: &[f64], every: i32| -> Vec<f64> {
            let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
            let each = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
            each.filter(within).collect()
        };
        let choices = [of(&[1.0, 2.0, 5.0], 1), of(&[1.0, 3.0], 1), of(&[1.0], 1)];
        let fits = |ticks: &Vec<f64>| (2..=wanted as usize + 1).contains(&ticks.len());
        let every = ((last - first) / wanted).max(1);
        let coarse = || of(&[1.0], every);
        choices.into_iter().find(fits).unwrap_or_else(|| {
            let ticks = coarse();
            if ticks.len() > 1 { ticks } else { self.between() }
        })
    }

    /// Labels in letters of this size, centred below their ticks. Near an end of the drawing a label ends
    /// there, since it would be cut. The last one has precedence over those that it would cover.
    pub(crate) fn labels<'a>(&self, ticks: &'a [(f64, String)], size: f64, width: f64) -> Vec<Label<'a>> {
        let mut labels = Vec::new();
        let mut free = f64::INFINITY;
        for (tick, text) in ticks.iter().rev().filter(|(_, text)| !text.is_empty()) {
            let (at, wide) = (self.x(*tick), text_width(text, size));
            let (x, anchor, left) = match wide / 2.0 {
                half if at + half > width => (width, "end", width - wide),
                half if at < half => (0.0, "start", 0.0),
                half => (at, "middle", at - half),
            };
            if left + wide + GAP <= free {
                labels.push(Label { x, anchor, text });
                free = left;
            }
        }
        labels.reverse();
        labels
    }

    /// Ticks of an axis that spans less than 1, 2 or 5 times a power: as on a linear one.
    fn between(&self) -> Vec<f64> {
        let step = round_up((self.to - self.from) / 3.0);
        let first = (self.from / step).ceil();
        let ticks = (0..4).map(|i| (first + f64::from(i)) * step);
        ticks.filter(|tick| *tick > 0.0 && (self.from..=self.to).contains(tick)).collect()
    }
}

/// The next 1, 2 or 5 times a power of ten.
pub(crate) fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let digits = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
    digits.into_iter().find(|round| *round >= value).unwrap_or(value)
}

/// A tenth of a pixel is finer than a screen.
pub(crate) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// About the width of a text in one of the wider fonts without serifs, so that there is room in each.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let of = |letter: char| match letter {
        'i' | 'j' | 'l' | ' ' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' | 'I' => 0.32,
        '(' | ')' | '/' | '-' | 'f' | 'r' | 't' => 0.41,
        'm' | 'M' | 'w' | 'W' | '%' => 0.97,
        '+' | '<' | '>' | '=' => 0.84,
        'A'..='Z' | '\u{2190}'..='\u{25ff}' => 0.77,
        _ => 0.64,
    };
    text.chars().map(of).sum::<f64>() * size
}

/// `20k`, `1.5M`: as short as an axis needs.
pub(crate) fn short(value: f64) -> String {
    let (divisor, suffix) = match value.abs() {
        v if v >= 1e9 => (1e9, "G"),
        v if v >= 1e6 => (1e6, "M"),
        v if v >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let scaled = value / divisor;
    // Ticks have one or two digits; the rest is rounding of binary numbers.
    let digits = (2 - scaled.abs().log10().floor().clamp(-6.0, 2.0) as i32).max(0) as usize;
    let text = format!("{scaled:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_an_axis_are_short() {
        let texts = [0.0, 0.05, 0.2, 5.0, 150.0, 2_000.0, 20_000.0, 1_500_000.0].map(short);
        assert_eq!(texts, ["0", "0.05", "0.2", "5", "150", "2000", "20k", "1.5M"]);
    }

    #[test]
    fn ticks_are_round_and_few() {
        let linear = Axis::linear(0.0, 0.9, 0.0, 1.0).ticks(5);
        assert_eq!(linear.len(), 5, "{linear:?}");
        assert_eq!(Axis::log(1.5, 160.0, 0.0, 1.0).ticks(6), [2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        let narrow = Axis::log(0.94, 1.06, 0.0, 1.0).ticks(4);
        assert_eq!(
            narrow.iter().map(|tick| format!("{tick:.3}")).collect::<Vec<_>>(),
            ["0.950", "1.000", "1.050"]
        );
        for (from, to) in [(1e-9, 1e9), (1e-300, 1e300), (f64::MIN_POSITIVE, f64::MAX)] {
            let ticks = Axis::log(from, to, 0.0, 1.0).ticks(4);
            assert!((1..=8).contains(&ticks.len()), "{ticks:?}");
        }
        for (from, to) in [(0.0, 1.0), (0.0, f64::INFINITY), (f64::NAN, f64::NAN)] {
            assert!(Axis::log(from, to, 0.0, 1.0).ticks(4).len() <= 8, "{from} {to}");
        }
    }

    #[test]
    fn the_ends_of_the_axis_are_the_ends_of_the_plot() {
        for axis in [Axis::linear(0.0, 0.9, 10.0, 90.0), Axis::log(1.0, 1000.0, 10.0, 90.0)] {
            assert_eq!((axis.x(axis.from), axis.x(axis.to)), (10.0, 90.0));
            assert_eq!((axis.x(f64::NAN), axis.x(f64::INFINITY)), (10.0, 10.0));
        }
    }

    #[test]
    fn labels_are_inside_the_drawing_and_none_is_on_another() {
        let texts = |values: &[f64]| values.iter().map(|v| (*v, v.to_string())).collect::<Vec<_>>();
        let axis = Axis::linear(0.0, 100.0, 2.0, 98.0);
        let ticks = texts(&[0.0, 50.0, 60.0, 100.0]);
        let found: Vec<_> =
            axis.labels(&ticks, 10.0, 100.0).iter().map(|l| (px(l.x), l.anchor, l.text)).collect();
        assert_eq!(
            found,
            [("0", "start", "0"), ("59.6", "middle", "60"), ("100", "end", "100")]
                .map(|(x, anchor, text)| (x.to_owned(), anchor, text))
        );
    }

    #[test]
    fn an_axis_of_values_of_one_size_begins_at_zero() {
        assert_eq!(Axis::fitting([3.0, 6.0].into_iter(), 0.0, 1.0).map(|axis| axis.is_log), Some(false));
        assert_eq!(Axis::fitting([3.0, 60.0].into_iter(), 0.0, 1.0).map(|axis| axis.is_log), Some(true));
        assert!(Axis::fitting([f64::NAN, 0.0].into_iter(), 0.0, 1.0).is_none());
    }
}
