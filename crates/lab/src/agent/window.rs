//! The agent's work from the start of a client until its end.

use super::recording::Recording;
use super::topology::Network;
use super::turns::TurnTaking;
use super::{Agent, counts, wire};
use crate::protocol::{Brake, Message, Turns, WindowRecord};
use linerate_contract::Nanos;

impl Agent {
    /// Records CPU times and counts from now on.
    pub(super) fn begin_window(
        &mut self,
        turns: Option<Turns>,
        brake: Option<Brake>,
        is_sampled: bool,
    ) -> Message {
        let mut recording = Recording::default();
        recording.sample(&mut self.processes, self.network.as_ref());
        self.recording = Some(recording);
        self.wires = self.network.as_ref().map(Network::wires).unwrap_or_default();
        self.counts = counts::of_servers(&self.processes);
        self.turns = turns.as_ref().map(TurnTaking::new);
        self.planned_brake = brake;
        if is_sampled {
            self.sampling.start();
        }
        self.start_brake()
    }

    /// The record between two times of `CLOCK_MONOTONIC`.
    pub(super) fn end_window(&mut self, window: [Nanos; 2]) -> Message {
        let mut recording = self.recording.take().unwrap_or_default();
        recording.sample(&mut self.processes, self.network.as_ref());
        self.brake = None;
        let window = recording.clamp(window);
        let turns = self.turns.take();
        let share = |window| turns.as_ref().map_or(1.0, |turns| turns.share(window));
        let running = share(window);
        let progress = recording.progress(window, |time| {
            Nanos((time.since(window[0]).0 as f64 * share([window[0], time])) as u64)
        });
        let [before, after] = window.map(|time| recording.at(time));
        let wires = self.network.as_ref().map(Network::wires).unwrap_or_default();
        let wires = wire::between(&self.wires, wires);
        let counts = counts::between(&self.counts, counts::of_servers(&self.processes));
        let sample = self.sampling.is_on().then(|| self.sampling.end(window));
        Message::Window(WindowRecord { before, after, running, wires, progress, counts, sample })
    }
}
