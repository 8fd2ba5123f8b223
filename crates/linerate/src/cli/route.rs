//! Where `linerate load` connects to.

use clap::Args;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Where connections go")]
pub struct RouteArgs {
    /// Connect to this host and port, or to several with commas in turn; the Host header and the TLS name
    /// remain those of the URL
    #[arg(long, value_name = "HOST:PORT")]
    pub connect_to: Option<String>,

    /// Local addresses that connections and flows come from, in turn: ADDR, FIRST-LAST or ADDR/BITS, several
    /// with commas. From one address to one port there are 28,000 connections at most
    #[arg(long, value_name = "ADDRS", value_parser = sources, conflicts_with = "unix_socket")]
    pub source: Option<Sources>,

    /// http, https: connect to this Unix domain socket; the Host header and the path remain those of the URL
    #[arg(long, value_name = "PATH", conflicts_with = "connect_to")]
    pub unix_socket: Option<PathBuf>,

    /// http, https: through this proxy, http://[NAME:PASSWORD@]HOST:PORT; for https by a tunnel (CONNECT).
    /// Variables such as http_proxy are not read
    #[arg(long, value_name = "URL", conflicts_with_all = ["connect_to", "unix_socket"])]
    pub proxy: Option<String>,
}

/// Local addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources(pub Vec<IpAddr>);

/// The most local addresses: with 28,000 ports each more than a process may open files.
const MOST_SOURCES: u128 = 4096;

/// `10.0.0.5,10.0.1.1-10.0.1.9,10.0.2.0/28`.
fn sources(text: &str) -> Result<Sources, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, count) = range(part.trim())?;
        if all.len() as u128 + count > MOST_SOURCES {
            return Err(format!("{part}: more than {MOST_SOURCES} addresses"));
        }
        all.extend((0..count).map(|n| address(first.is_ipv4(), bits(first) + n)));
    }
    Ok(Sources(all))
}

/// The first address and the number of a part.
fn range(part: &str) -> Result<(IpAddr, u128), String> {
    let wrong = || format!("`{part}`: expected ADDR, FIRST-LAST or ADDR/BITS, such as 127.0.0.2-127.0.0.9");
    let ip = |text: &str| text.trim().parse::<IpAddr>().map_err(|_| wrong());
    if let Some((first, last)) = part.split_once('-') {
        let (first, last) = (ip(first)?, ip(last)?);
        let count = bits(last).checked_sub(bits(first)).filter(|_| first.is_ipv4() == last.is_ipv4());
        return Ok((first, count.ok_or_else(wrong)?.saturating_add(1)));
    }
    let Some((base, prefix)) = part.split_once('/') else { return Ok((ip(part)?, 1)) };
    let base = ip(base)?;
    let width: u32 = if base.is_ipv4() { 32 } else { 128 };
    let free = prefix.parse::<u32>().ok().and_then(|prefix| width.checked_sub(prefix)).ok_or_else(wrong)?;
    let count = 1_u128.checked_shl(free).unwrap_or(u128::MAX);
    Ok((address(base.is_ipv4(), bits(base) & !(count - 1)), count))
}

fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn address(is_v4: bool, bits: u128) -> IpAddr {
    if is_v4 { IpAddr::V4((bits as u32).into()) } else { IpAddr::V6(bits.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_addresses_ranges_and_networks() {
        let all = sources("10.0.0.5, 10.0.1.254-10.0.2.1,::1,10.9.0.7/30").unwrap().0;
        let texts: Vec<String> = all.iter().map(IpAddr::to_string).collect();
        let range = ["10.0.1.254", "10.0.1.255", "10.0.2.0", "10.0.2.1"];
        assert_eq!(
            (&*texts[0], &texts[1..5], &*texts[5]),
            ("10.0.0.5", &range.map(str::to_owned)[..], "::1")
        );
        assert_eq!(texts[6..], ["10.9.0.4", "10.9.0.5", "10.9.0.6", "10.9.0.7"]);
        for wrong in
            ["", "lo", "10.0.0.1-", "10.0.0.2-10.0.0.1", "10.0.0.1-::1", "10.0.0.0/33", "10.0.0.0/8", "::/0"]
        {
            let error = sources(wrong).unwrap_err();
            assert!(error.contains("expected ADDR") || error.contains("more than 4096"), "{wrong}: {error}");
        }
    }
}
