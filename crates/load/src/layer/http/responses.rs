//! Responses as they are received: parsed, counted, compared.

use super::cause::note_end;
use super::{Exchange, Reader, STATUSES};
use crate::layer::wire::Sink;
use crate::layer::{Progress, Response, Wrong};
use linerate_contract::ErrorKind;
use linerate_proto::events::{EventKind, Events};
use linerate_proto::http::response::{Malformed, ParserState};

/// The responses that one look at the socket gave.
pub(super) struct Responses<'a, const SEVERAL: bool> {
    pub(super) reader: &'a mut Reader<SEVERAL>,
    pub(super) exchange: &'a mut Exchange,
    pub(super) first: Option<Progress>,
}

impl<const SEVERAL: bool> Sink for Responses<'_, SEVERAL> {
    #[inline]
    fn take(&mut self, bytes: &mut [u8]) -> Result<(), ErrorKind> {
        let mut left = &*bytes;
        loop {
            match self.parse(left) {
                Ok((None, _)) => return Ok(()),
                Ok((Some(response), rest)) => {
                    if self.first.is_none() {
                        self.first = Some(response);
                    } else {
                        self.reader.further.push_back(Ok(response));
                    }
                    // Bytes behind the last response before a close are ignored.
                    if rest == 0 || !is_reusable(&response) {
                        return Ok(());
                    }
                    left = &left[left.len() - rest..];
                }
                Err(kind) if self.first.is_none() => return Err(kind),
                // Those before it are good.
                Err(kind) => {
                    self.reader.further.push_back(Err(kind));
                    return Ok(());
                }
            }
        }
    }
}

impl<const SEVERAL: bool> Responses<'_, SEVERAL> {
    /// The response that is complete with these bytes, and how many bytes are behind it.
    #[inline]
    fn parse(&mut self, bytes: &[u8]) -> Result<(Option<Progress>, usize), ErrorKind> {
        let fed = if let Some(timed) = self.reader.events {
            self.feed_timed(timed, bytes)
        } else {
            let Exchange { kind, parser, check, .. } = &mut *self.exchange;
            let Reader { mix, last, .. } = &mut *self.reader;
            let verifier = &mix.kind(*kind).verifier;
            parser.feed(bytes, last, |at, bytes| verifier.body(check, at, bytes))
        };
        let state = fed.map_err(|malformed| Self::note_malformed(malformed, bytes))?;
        let ParserState::Complete { rest } = state else {
            // A wrong response is read to its end, for the next one, unless it lasts until the peer closes.
            let lasts = self.exchange.parser.end_completes();
            return if lasts { self.wrong_head(bytes).map_or(Ok((None, 0)), Err) } else { Ok((None, 0)) };
        };
        let response = self.complete(bytes);
        if rest > 0 && self.exchange.due == 0 && is_reusable(&response) {
            // No further request was sent.
            return Err(Self::note_malformed(Malformed::Excess, &bytes[bytes.len() - rest..]));
        }
        Ok((Some(response), rest))
    }

    /// Takes bytes whose events are counted.
    #[cold]
    fn feed_timed(&mut self, timed: EventKind, bytes: &[u8]) -> Result<ParserState, Malformed> {
        let Exchange { kind, parser, check, events, .. } = &mut *self.exchange;
        let Reader { mix, last, arrived, .. } = &mut *self.reader;
        let verifier = &mix.kind(*kind).verifier;
        parser.feed(bytes, last, |at, bytes| {
            verifier.body(check, at, bytes);
            *arrived += events.feed(timed, bytes);
        })
    }

    /// The fault of the head of a response that will not be complete.
    fn wrong_head(&mut self, bytes: &[u8]) -> Option<ErrorKind> {
        let head = *self.exchange.parser.head()?;
        let wrong = self.reader.mix.kind(self.exchange.kind).verifier.head(&head).err()?;
        self.reader.statuses[usize::from(head.status) % STATUSES] += 1;
        self.note_wrong(wrong, &head, bytes);
        Some(wrong)
    }

    /// The peer has closed.
    #[cold]
    pub(super) fn end(&mut self, cut: bool) -> Result<Progress, ErrorKind> {
        if self.exchange.parser.end_completes() && !cut {
            return Ok(self.complete(&[]));
        }
        let kind = match self.exchange.parser.is_fresh() {
            true => ErrorKind::EmptyResponse,
            false => self.wrong_head(&[]).unwrap_or(ErrorKind::Truncated),
        };
        note_end(self.exchange, kind);
        Err(kind)
    }

    #[inline]
    fn complete(&mut self, bytes: &[u8]) -> Progress {
        let head = *self.exchange.parser.head().expect("a response is complete only after its head");
        let body = self.exchange.parser.body_bytes();
        let verifier = &self.reader.mix.kind(self.exchange.kind).verifier;
        let verified = verifier.head(&head).and_then(|()| verifier.response(&self.exchange.check, body));
        if let Err(kind) = verified {
            self.note_wrong(kind, &head, bytes);
        }
        let (exchange, reader) = (&mut *self.exchange, &mut *self.reader);
        reader.statuses[usize::from(head.status) % STATUSES] += 1;
        if let Some(odd) = exchange.parser.odd() {
            reader.odd[odd as usize] += 1;
        }
        if SEVERAL {
            reader.answered = exchange.kind.take().unwrap_or(0);
        }
        exchange.events = Events::default();
        let kind = reader.mix.kind(None);
        exchange.parser.reset(kind.bodiless);
        exchange.due = exchange.due.saturating_sub(1);
        if exchange.due > 0 {
            exchange.check = kind.verifier.begin();
        }
        let (reusable, status) = (head.reusable, head.status);
        match verified {
            Ok(verified) => Progress::Complete(Response { bytes: body, verified, reusable, status }),
            Err(kind) => Progress::Wrong(Wrong { kind, reusable, status }),
        }
    }
}

/// Whether the connection can carry another request after this response.
fn is_reusable(response: &Progress) -> bool {
    matches!(
        response,
        Progress::Complete(Response { reusable: true, .. }) | Progress::Wrong(Wrong { reusable: true, .. })
    )
}
