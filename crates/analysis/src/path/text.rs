//! A path as text, for plans and reports.

use super::{Device, Impairment, Link, Means, NetworkPath};
use linerate_contract::Bytes;
use std::fmt;

impl fmt::Display for NetworkPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.device {
            Device::Loopback => "loopback",
            Device::Veth => "veth",
            Device::Tun => "TUN",
            Device::TunPair => "two TUN devices",
        })?;
        match self.routers() {
            0 => {}
            1 => f.write_str(", 1 router")?,
            n => write!(f, ", {n} routers")?,
        }
        let impaired = self.links.iter().enumerate().filter(|(_, link)| link.is_impaired());
        for (index, link) in impaired {
            if index == 0 {
                f.write_str("; ")?
            } else {
                write!(f, "; link {}: ", index + 1)?
            }
            describe(link, f)?;
        }
        Ok(())
    }
}

fn describe(link: &Link, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let [up, down] = [link.up, link.down].map(|way| text(&way.unwrap_or_default()));
    if up == down {
        write!(f, "each way {up}")?
    } else {
        write!(f, "up {up}; down {down}")?
    }
    match link.means {
        Means::Auto => Ok(()),
        Means::Kernel => f.write_str(" (by the kernel)"),
        Means::Relay => f.write_str(" (by the relay)"),
    }
}

fn text(way: &Impairment) -> String {
    let mut parts = Vec::new();
    if !super::is_zero(&way.delay) {
        let jitter = (!super::is_zero(&way.jitter)).then(|| format!(" +- {}", millis(way.jitter.0)));
        parts.push(format!("{}{} ms", millis(way.delay.0), jitter.unwrap_or_default()));
    }
    if !way.loss.is_zero() {
        let burst = way.burst.map_or_else(String::new, |burst| format!(" in bursts of {burst}"));
        parts.push(format!("loss {}{burst}", way.loss));
    }
    if let Some(rate) = way.rate {
        let queue =
            way.queue.map_or_else(String::new, |Bytes(queue)| format!(" with a queue of {queue} bytes"));
        parts.push(format!("{rate}{queue}"));
    }
    if !way.reorder.is_zero() {
        parts.push(format!("reordered {}", way.reorder));
    }
    if parts.is_empty() { "unchanged".into() } else { parts.join(", ") }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::super::units::{BitRate, Share};
    use super::*;
    use linerate_contract::Nanos;

    #[test]
    fn a_path_is_one_line() {
        assert_eq!(NetworkPath::from(Shape::TunRouter).to_string(), "TUN, 1 router");
        let mut path = NetworkPath::new(Device::Veth, 2);
        let delay = Impairment { delay: Nanos(20_000_000), ..Impairment::default() };
        (path.links[0].up, path.links[0].down) = (Some(delay), Some(delay));
        path.links[2].down = Some(Impairment {
            loss: Share(0.01),
            burst: Some(4.0),
            rate: Some(BitRate(10_000_000)),
            queue: Some(Bytes(125_000)),
            ..Impairment::default()
        });
        path.links[2].means = Means::Relay;
        assert_eq!(
            path.to_string(),
            "veth, 2 routers; each way 20 ms; link 3: up unchanged; down loss 1 % in bursts of 4, \
             10 Mbit/s with a queue of 125000 bytes (by the relay)"
        );
    }
}
