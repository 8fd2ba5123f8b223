//! A path as text, for plans and reports.

use super::{Device, Link, Means, NetworkPath};
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
    let [up, down] = [link.up, link.down].map(|way| way.unwrap_or_default().to_string());
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

#[cfg(test)]
mod tests {
    use super::super::units::{BitRate, Share};
    use super::super::{Impairment, Shape};
    use super::*;
    use linerate_contract::{Bytes, Nanos};

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
