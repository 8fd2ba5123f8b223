//! The work on a server's frames.

use super::{Ended, Lane, Responses, Streams};
use crate::fields::ResponseFields;
use crate::h2::Code;
use crate::h2::connection::{Link, Side};
use crate::http::response::{BodyFraming, Head};

pub(super) struct ClientSide<'a, A> {
    pub(super) streams: &'a mut Streams,
    pub(super) responses: &'a mut A,
}

impl<A: Responses> ClientSide<'_, A> {
    /// The peer has ended a stream.
    #[inline]
    fn complete(&mut self, link: &mut Link, lane: usize) {
        let Lane { head, bodiless, got, .. } = self.streams.lanes[lane];
        let is_whole = head.is_some_and(|length| bodiless || length.is_none_or(|length| length == got));
        let ended = if is_whole { Ended::Complete } else { Ended::Malformed };
        self.streams.answered += 1;
        self.responses.end(lane, got, ended);
        if self.streams.sending.iter().any(|sending| usize::from(*sending) == lane) {
            // The server does not wait for the rest of the request.
            self.streams.reset(link, lane, Code::CANCEL);
        } else {
            self.streams.free(lane);
        }
    }

    #[inline]
    fn rpc(&mut self, lane: usize, fields: &ResponseFields) {
        if fields.is_rpc {
            self.responses.rpc_content(lane);
        }
        if let Some(status) = fields.rpc_status {
            self.responses.rpc_status(lane, status);
        }
    }

    #[cold]
    fn malformed(&mut self, link: &mut Link, lane: usize) {
        self.responses.end(lane, self.streams.lanes[lane].got, Ended::Malformed);
        self.streams.reset(link, lane, Code::PROTOCOL_ERROR);
    }
}

impl<A: Responses> Side for ClientSide<'_, A> {
    type Fields = ResponseFields;

    #[inline]
    fn headers(
        &mut self,
        link: &mut Link,
        stream: u32,
        fields: &ResponseFields,
        end: bool,
    ) -> Result<(), Code> {
        let Some(lane) = self.streams.find_open(stream)? else { return Ok(()) };
        let state = &mut self.streams.lanes[lane];
        match (state.head, fields.status) {
            _ if fields.is_bad => self.malformed(link, lane),
            // Interim responses, and trailers.
            (None, Some(100..200)) if !end => {}
            (Some(_), None) if end => {
                self.rpc(lane, fields);
                self.complete(link, lane);
            }
            (None, Some(status @ 200..)) => {
                state.head = Some(fields.length);
                let length = if state.bodiless || end { Some(0) } else { fields.length };
                let framing = length.map_or(BodyFraming::UntilClose, BodyFraming::Length);
                self.responses.head(lane, &Head { status, framing, reusable: true });
                self.rpc(lane, fields);
                if end {
                    self.complete(link, lane);
                }
            }
            _ => self.malformed(link, lane),
        }
        Ok(())
    }

    #[inline]
    fn data_begins(&mut self, link: &mut Link, stream: u32, length: usize) -> Result<(), Code> {
        self.streams.current = self.streams.find_open(stream)?;
        let Some(lane) = self.streams.current else { return Ok(()) };
        let state = &mut self.streams.lanes[lane];
        state.receive.take(length)?;
        if state.head.is_none() {
            self.malformed(link, lane);
            self.streams.current = None;
        }
        Ok(())
    }

    #[inline]
    fn data(&mut self, piece: &[u8]) {
        let Some(lane) = self.streams.current else { return };
        let state = &mut self.streams.lanes[lane];
        self.responses.body(lane, state.got, piece);
        state.got += piece.len() as u64;
    }

    #[inline]
    fn data_ends(&mut self, link: &mut Link, stream: u32, end: bool) -> Result<(), Code> {
        let Some(lane) = self.streams.current.take() else { return Ok(()) };
        if end {
            self.complete(link, lane);
        } else if let Some(increment) = self.streams.lanes[lane].receive.update() {
            link.output.update_window(stream, increment);
        }
        Ok(())
    }

    #[cold]
    fn reset(&mut self, link: &mut Link, stream: u32, code: Code) -> Result<(), Code> {
        if let Some(lane) = self.streams.find(stream)? {
            link.has_progress();
            self.responses.end(lane, self.streams.lanes[lane].got, Ended::Reset(code));
            self.streams.free(lane);
        }
        Ok(())
    }

    fn window(&mut self, stream: u32, by: u32) -> Result<(), Code> {
        match self.streams.find(stream)? {
            Some(lane) => self.streams.lanes[lane].send.grow(by.into()),
            None => Ok(()),
        }
    }

    fn windows(&mut self, by: i64) -> Result<(), Code> {
        let lanes = self.streams.ids.iter().zip(&mut self.streams.lanes);
        lanes.filter(|(id, _)| **id != 0).try_for_each(|(_, lane)| lane.send.grow(by))
    }

    #[cold]
    fn goaway(&mut self, last: u32, code: Code) -> Result<(), Code> {
        self.streams.closes = true;
        let keeps = self.streams.ids.iter().any(|id| (1..=last).contains(id));
        self.responses.goaway(code, keeps);
        for lane in 0..self.streams.ids.len() {
            if self.streams.ids[lane] > last {
                self.responses.end(lane, 0, Ended::Unprocessed(code));
                self.streams.free(lane);
            }
        }
        Ok(())
    }
}
