//! Frames of a server, as responses that are compared, counted and timed in their lanes.

use super::{CodeCounts, LaneState, Reader, cause};
use crate::clock;
use crate::layer::http::STATUSES;
use crate::layer::wire::Sink;
use crate::layer::{LaneEnd, Response, Wrong};
use linerate_contract::{ErrorKind, Nanos};
use linerate_proto::h2::Code;
use linerate_proto::h2::client::{Client, Ended, Responses};
use linerate_proto::http::response::Head;

pub(super) struct Frames<'a> {
    pub(super) client: &'a mut Client,
    pub(super) lanes: &'a mut [LaneState],
    pub(super) reader: &'a mut Reader,
}

impl Sink for Frames<'_> {
    #[inline]
    fn take(&mut self, bytes: &mut [u8]) -> Result<(), ErrorKind> {
        let has_answered = self.client.answered() > 0;
        let mut responses =
            LaneResponses { lanes: self.lanes, reader: self.reader, has_answered, keeps: false };
        let fed = self.client.feed(bytes, &mut responses).map_err(|code| cause::broken(code, bytes));
        if self.reader.fresh > 0 {
            self.note_first();
        }
        fed
    }
}

impl Frames<'_> {
    /// Notes the time of responses that have begun and not ended.
    #[cold]
    fn note_first(&mut self) {
        let now = clock::now();
        let has_begun = |lane: &&mut LaneState| lane.status != 0 && lane.first == Nanos::ZERO;
        self.lanes.iter_mut().filter(has_begun).for_each(|lane| lane.first = now);
        self.reader.fresh = 0;
    }
}

struct LaneResponses<'a> {
    lanes: &'a mut [LaneState],
    reader: &'a mut Reader,
    /// The connection has brought a response.
    has_answered: bool,
    /// The peer ends the connection after a stream that it still works on.
    keeps: bool,
}

impl LaneResponses<'_> {
    #[cold]
    fn note_events(&mut self, lane: usize, count: u32) {
        if count > 0 {
            let (state, at) = (&mut self.lanes[lane], clock::now());
            let last = std::mem::replace(&mut state.last_event, at);
            self.reader.ended.push(state.ending(LaneEnd::Events { count, last, at }));
        }
    }

    /// Whether the complete response was compared.
    #[inline]
    fn complete(&mut self, lane: usize, bytes: u64) -> Result<bool, ErrorKind> {
        let LaneState { request, check, rpc_status, messages, wrong, status, .. } = &self.lanes[lane];
        let verifier = &self.reader.verifiers[*request as usize];
        let outcome = wrong.map_or(Ok(()), Err).and_then(|()| verifier.response(check, bytes));
        let verified = outcome.map_err(|kind| verifier.note(kind, *status, bytes, &[]))?;
        self.reader.calls.as_mut().map_or(Ok(()), |calls| calls.complete(*rpc_status, messages))?;
        Ok(verified)
    }

    /// The operation of a lane is over.
    #[inline]
    fn over(&mut self, lane: usize, end: LaneEnd) {
        let state = &mut self.lanes[lane];
        self.reader.ended.push(state.ending(end));
        if state.status != 0 {
            self.reader.statuses[usize::from(state.status) % STATUSES] += 1;
            self.reader.fresh -= u32::from(state.first == Nanos::ZERO);
        }
        if end == LaneEnd::Withdrawn {
            self.reader.order.give_back(state.request);
        }
        if let Some(calls) = &mut self.reader.calls {
            calls.count(state.rpc_status);
        }
        state.leave();
    }
}

impl Responses for LaneResponses<'_> {
    #[inline]
    fn head(&mut self, lane: usize, head: &Head) {
        let state = &mut self.lanes[lane];
        state.status = head.status;
        self.reader.fresh += 1;
        state.wrong = self.reader.verifiers[state.request as usize].wrong_head(head);
    }

    #[inline]
    fn body(&mut self, lane: usize, at: u64, bytes: &[u8]) {
        let Reader { verifiers, calls, events, .. } = &mut *self.reader;
        let state = &mut self.lanes[lane];
        let verifier = &verifiers[state.request as usize];
        match state.wrong {
            Some(kind) => _ = verifier.note(kind, state.status, bytes.len() as u64, bytes),
            None => verifier.body(&mut state.check, at, bytes),
        }
        let messages = if calls.is_some() { state.messages.take(bytes) } else { 0 };
        if let Some(kind) = *events {
            let count = if calls.is_some() { messages } else { state.events.feed(kind, bytes) };
            self.note_events(lane, count);
        }
    }

    #[inline]
    fn rpc_content(&mut self, lane: usize) {
        self.lanes[lane].messages.are_typed();
    }

    #[inline]
    fn rpc_status(&mut self, lane: usize, status: u32) {
        if self.lanes[lane].rpc_status.replace(status).is_some() {
            self.lanes[lane].messages.have_two_statuses();
        }
    }

    #[inline]
    fn end(&mut self, lane: usize, bytes: u64, ended: Ended) {
        let end = match ended {
            Ended::Complete => {
                self.has_answered = true;
                let status = self.lanes[lane].status;
                match self.complete(lane, bytes) {
                    Ok(verified) => LaneEnd::Answered(Response { bytes, verified, reusable: true, status }),
                    Err(kind) => LaneEnd::Failed(Wrong { kind, reusable: true, status }),
                }
            }
            // A connection on which nothing ends would be followed by others for ever.
            Ended::Unprocessed(Code::NO_ERROR) if self.has_answered || self.keeps => LaneEnd::Withdrawn,
            other => {
                if let Ended::Reset(code) = other {
                    count(&mut self.reader.resets, code);
                }
                let wrong = self.lanes[lane].wrong;
                LaneEnd::Failed(Wrong::without_response(wrong.unwrap_or_else(|| cause::stream(other))))
            }
        };
        self.over(lane, end);
    }

    #[cold]
    fn goaway(&mut self, code: Code, keeps: bool) {
        self.keeps = keeps;
        count(&mut self.reader.goaways, code);
    }
}

fn count(counts: &mut CodeCounts, code: Code) {
    counts[(code.0 as usize).min(counts.len() - 1)] += 1;
}
