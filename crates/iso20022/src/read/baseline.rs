//! What plain tokenising costs: the measure that reading is compared with, in the same run.

use quick_xml::Reader;
use quick_xml::events::Event;

/// Tokenises a message with quick-xml and nothing else; the number of events, 0 where the bytes are not well-formed.
#[must_use]
pub fn tokenise_only(bytes: &[u8]) -> usize {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return 0;
    };
    let mut reader = Reader::from_str(text);
    let mut events = 0;
    loop {
        match reader.read_event() {
            Ok(Event::Eof) => return events,
            Ok(_) => events += 1,
            Err(_) => return 0,
        }
    }
}
