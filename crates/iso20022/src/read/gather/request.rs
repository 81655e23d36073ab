//! Elements of the business header and of requests.

use clearspan_ledger::{BusinessDate, Currency, Reason};

use super::{Definition, Field, Gather, Place, is_digits};

impl Gather<'_> {
    // Business header and requests.
    pub(super) fn close_other(&mut self, field: Field, text: &[u8], place: &dyn Place) {
        let owned = || String::from_utf8_lossy(text).into_owned();
        match field {
            Field::OriginalMessageId => self.original.message_id = owned(),
            Field::OriginalMessageName => self.original.message_name = owned(),
            Field::OriginalGroup => {
                let original = std::mem::take(&mut self.original);
                if self.in_transaction {
                    self.requested.original = Some(original);
                } else {
                    self.original_messages.push(original);
                }
            }
            Field::ReportName => self.report.message_name = owned(),
            Field::ReportCurrency => {
                self.report.currency =
                    Currency::parse(text).filter(|currency| currency.is_listed());
                if self.report.currency.is_none() {
                    self.fault(place, Reason::CurrencyInvalid, "not a listed currency");
                }
            }
            Field::ReportFromDate | Field::ReportToDate => {
                let date = BusinessDate::parse(text);
                if date.is_none() {
                    self.fault(place, Reason::FieldInvalid, "not a date");
                }
                if field == Field::ReportFromDate {
                    self.report.from_date = date;
                } else {
                    self.report.to_date = date;
                }
            }
            Field::ReportFromSequence | Field::ReportToSequence | Field::ReportEqual => {
                let number = std::str::from_utf8(text)
                    .ok()
                    .filter(|text| is_digits(text))
                    .and_then(|text| text.parse().ok());
                if number.is_none() {
                    self.fault(place, Reason::FieldInvalid, "not a sequence number");
                }
                match (field, self.report.sequences.last_mut()) {
                    // The second half of a range.
                    (Field::ReportToSequence, Some(range)) if range.1.is_none() => range.1 = number,
                    (Field::ReportToSequence, _) => self.report.sequences.push((None, number)),
                    (Field::ReportFromSequence, _) => self.report.sequences.push((number, None)),
                    _ => self.report.sequences.push((number, number)),
                }
            }
            _ => {
                let Some(header) = self.header.as_mut() else {
                    return;
                };
                match field {
                    Field::HeaderId => header.message_id = owned(),
                    Field::HeaderDefinition => header.definition = owned(),
                    Field::HeaderService => header.service = Some(owned()),
                    Field::HeaderCopy => header.copy = Some(owned()),
                    Field::HeaderPossibleDuplicate => {
                        header.possible_duplicate = matches!(text, b"true" | b"1")
                    }
                    _ => {}
                }
            }
        }
    }

    pub(super) fn request_text(&mut self, field: Field, text: &[u8]) {
        if !self.is_request() {
            return;
        }
        let text = Some(String::from_utf8_lossy(text).into_owned());
        match field {
            Field::InstructionId if self.is(Definition::Report) => self.report.id = text,
            Field::InstructionId => self.requested.request_id = text,
            Field::OriginalInstructionId => self.requested.instruction = text,
            Field::OriginalEndToEndId => self.requested.end_to_end = text,
            Field::OriginalTransactionId => self.requested.transaction = text,
            Field::OriginalUetr => self.requested.uetr = text,
            _ => {}
        }
    }
}
