//! Transactions' own bytes and hashes, and the end of the message.

use std::mem;

use xxhash_rust::xxh3::xxh3_64;

use super::place::{End, Here, Lines, fault};
use super::{Definition, Fault, Incoming, Note, Stop, Walk, heap};

impl Walk<'_, '_> {
    // `declarations`: in scope outside the transaction, which begins at `at`. The heap begins with what surrounds the first transaction; every transaction's bytes follow.
    pub(super) fn begin_body(&mut self, at: usize, declarations: usize) -> Result<(), Stop> {
        self.hasher.update(&self.canonical);
        self.canonical.clear();
        self.identifiers.clear();
        self.in_transaction = true;
        let first = self.heap.is_empty();
        if matches!(
            self.gather.definition,
            Some((Definition::Status | Definition::Report, _))
        ) {
            return Ok(());
        }
        // Transactions of a cancellation have different parents, which may declare prefixes of their own.
        let own = self
            .frames
            .last()
            .is_some_and(|parent| parent.declarations != declarations)
            || !self.inherited.is_empty();
        let several = matches!(self.gather.definition, Some((Definition::Cancellation, _)));
        if first || (several && (own || self.context_own)) {
            let mut context = Vec::new();
            let mut inherited: Vec<(&[u8], &[u8])> = Vec::new();
            for (at, name, value) in self.inherited.iter().rev() {
                if *at < self.frames.len() && !inherited.iter().any(|(known, _)| known == name) {
                    inherited.push((name, value));
                }
            }
            // The prefix of the element around the transactions: a transaction may declare its own, which the context lacks.
            let around = self.frames.last().map_or(&b""[..], |parent| {
                parent.name.get(..parent.colon).unwrap_or_default()
            });
            let surroundings = heap::Surroundings {
                namespace: self.names.uri(self.namespace),
                prefix: around,
                declarations: &self.names.in_scope(declarations),
                inherited: &inherited,
            };
            if surroundings.push(&mut context).is_none() {
                return Err(self.stop("a longer xml:lang than one may be"));
            }
            if first {
                self.context_own = own;
                let parts = [self.group_header, self.original_group]
                    .map(|(from, to)| self.bytes.get(from..to).unwrap_or_default());
                // What is left of the message is about what the transactions take. Each part has a length before it.
                let left = self.bytes.len().saturating_sub(at);
                let surrounding = parts.iter().map(|part| part.len() + 4).sum::<usize>();
                self.heap.reserve(context.len() + surrounding + left);
                self.heap.append(&mut context);
                for part in parts {
                    if heap::push_long(&mut self.heap, part).is_none() {
                        return Err(self.stop("larger than one message may be"));
                    }
                }
            } else if !self.heap.starts_with(&context) {
                return Err(
                    self.stop("transactions of one message under different namespace declarations")
                );
            }
        }
        self.body = self.heap.len();
        Ok(())
    }

    pub(super) fn end_body(&mut self) -> Result<(), Stop> {
        self.in_transaction = false;
        let Some(frame) = self.frames.last() else {
            return Ok(());
        };
        let content_digest = xxh3_64(&self.canonical);
        // The identifiers stand before the content in the message's hash; their length keeps the two apart.
        let len = u64::try_from(self.identifiers.len()).unwrap_or(u64::MAX);
        self.hasher.update(&len.to_le_bytes());
        self.hasher.update(&self.identifiers);
        self.hasher.update(&self.canonical);
        self.canonical.clear();
        let mut body = (0, 0);
        if !matches!(
            self.gather.definition,
            Some((Definition::Status | Definition::Report, _))
        ) {
            self.heap.extend_from_slice(
                self.bytes
                    .get(frame.at..self.scanner.position())
                    .unwrap_or_default(),
            );
            let place = (
                u32::try_from(self.body),
                u32::try_from(self.heap.len() - self.body),
            );
            let (Ok(offset), Ok(len)) = place else {
                return Err(self.stop("larger than one message may be"));
            };
            body = (offset, len);
        }
        let here = Here {
            frames: &self.frames,
            at: frame.at,
            before: self.gather.count_read(),
        };
        self.gather.close_transaction(content_digest, body, &here);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Incoming, Box<Fault>> {
        let end = End {
            at: self.bytes.len(),
        };
        if let Some(name) = &self.message_name {
            self.gather.compare_header(name, &end);
        }
        let digest = self.digest.unwrap_or(0);
        // Room that was reserved for what is not part of a transaction. A little of it may stay: a smaller allocation
        // each time keeps the allocator from using the same memory again.
        if self.heap.capacity() - self.heap.len() > self.heap.len() / 8 {
            self.heap.shrink_to_fit();
        }
        match self.gather.finish(digest, mem::take(&mut self.heap), &end) {
            Ok((Incoming::Submission(mut submitted), mut marks)) => {
                marks.sort_by_key(|mark| mark.at);
                let mut lines = Lines::new(self.bytes);
                submitted.notes.extend(marks.into_iter().map(|mark| Note {
                    payment: mark.payment,
                    reason: mark.reason,
                    line: lines.line(mark.at),
                    path: mark.path,
                    detail: mark.detail,
                }));
                Ok(Incoming::Submission(submitted))
            }
            Ok((request, _)) => Ok(request),
            Err(stop) => Err(fault(
                self.bytes,
                stop,
                &mut self.gather,
                self.message_name.take(),
                "/Document",
            )),
        }
    }
}
