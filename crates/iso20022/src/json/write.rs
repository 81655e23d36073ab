//! The XML that a message in JSON stands for, and the way back from a place in it.

use clearspan_ledger::{Bic, Timestamp};

use super::{
    Amount, Cancellation, Message, Original, Party, Payment, Return, SettleBy, StatusRequest,
    Transfer,
};

/// The XML message that stands for one in JSON, as its sender would send it. `created` is no part of what decides.
#[must_use]
pub fn to_xml(message: &Message, sender: Bic, created: Timestamp) -> Vec<u8> {
    let mut xml = Xml {
        out: String::with_capacity(1024),
        sender: sender.to_string(),
        created: created.to_string(),
    };
    match message {
        Message::Transfer(transfer) => xml.transfer(transfer),
        Message::Return(returned) => xml.returned(returned),
        Message::Cancellation(cancellation) => xml.cancellation(cancellation),
        Message::StatusRequest(request) => xml.status_request(request),
    }
    xml.out.into_bytes()
}

struct Xml {
    out: String,
    sender: String,
    created: String,
}

impl Xml {
    fn document(&mut self, definition: &str, root: &str, content: impl FnOnce(&mut Self)) {
        self.out
            .push_str("<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:");
        self.out.push_str(definition);
        self.out.push_str("\">");
        self.group(root, content);
        self.out.push_str("</Document>");
    }

    fn group(&mut self, tag: &str, content: impl FnOnce(&mut Self)) {
        self.tag("<", tag);
        content(self);
        self.tag("</", tag);
    }

    fn tag(&mut self, open: &str, tag: &str) {
        self.out.push_str(open);
        self.out.push_str(tag);
        self.out.push('>');
    }

    fn text(&mut self, tag: &str, text: &str) {
        self.group(tag, |xml| xml.escaped(text));
    }

    fn optional(&mut self, tag: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(tag, text);
        }
    }

    /// What XML cannot hold becomes a reference that the reader refuses: nothing is left out or replaced in silence.
    fn escaped(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' => self.out.push_str("&quot;"),
                '\t' | '\n' => self.out.push(character),
                '\0'..' ' | '\u{FFFE}' | '\u{FFFF}' => {
                    self.out.push_str(&format!("&#{};", u32::from(character)));
                }
                _ => self.out.push(character),
            }
        }
    }

    fn amount(&mut self, tag: &str, amount: &Amount) {
        self.out.push('<');
        self.out.push_str(tag);
        self.out.push_str(" Ccy=\"");
        self.escaped(&amount.currency);
        self.out.push_str("\">");
        self.escaped(&amount.value);
        self.tag("</", tag);
    }

    fn institution(&mut self, tag: &str, bic: &str) {
        self.group(tag, |xml| {
            xml.group("FinInstnId", |xml| xml.text("BICFI", bic));
        });
    }

    fn sender(&mut self, tag: &str) {
        let sender = self.sender.clone();
        self.institution(tag, &sender);
    }

    fn created(&mut self) {
        let created = self.created.clone();
        self.text("CreDtTm", &created);
    }

    fn head(&mut self, message_id: &str, count: usize) {
        self.text("MsgId", message_id);
        self.created();
        self.text("NbOfTxs", &count.to_string());
        self.group("SttlmInf", |xml| xml.text("SttlmMtd", "CLRG"));
        self.sender("InstgAgt");
    }

    fn transfer(&mut self, transfer: &Transfer) {
        self.document("pacs.008.001.08", "FIToFICstmrCdtTrf", |xml| {
            xml.group("GrpHdr", |xml| {
                xml.head(&transfer.message_id, transfer.payments.len());
            });
            for payment in &transfer.payments {
                xml.group("CdtTrfTxInf", |xml| xml.payment(transfer, payment));
            }
        });
    }

    fn payment(&mut self, transfer: &Transfer, payment: &Payment) {
        self.group("PmtId", |xml| {
            xml.optional("InstrId", payment.instruction_id.as_deref());
            xml.text(
                "EndToEndId",
                payment.end_to_end_id.as_deref().unwrap_or("NOTPROVIDED"),
            );
            xml.optional("TxId", payment.transaction_id.as_deref());
            xml.optional("UETR", payment.uetr.as_deref());
        });
        let (channel, priority) = match transfer.settlement {
            SettleBy::Urgent => ("RTGS", "URGT"),
            SettleBy::High => ("RTGS", "HIGH"),
            SettleBy::Normal => ("RTGS", "NORM"),
            SettleBy::Net => ("RTNS", "NORM"),
        };
        self.group("PmtTpInf", |xml| {
            xml.text("ClrChanl", channel);
            if transfer.settle_or_refuse {
                xml.group("LclInstrm", |xml| xml.text("Prtry", "SOR"));
            }
        });
        self.amount("IntrBkSttlmAmt", &payment.amount);
        self.text("IntrBkSttlmDt", &transfer.business_date);
        self.text("SttlmPrty", priority);
        let times = [
            ("TillTm", &payment.warn_time),
            ("FrTm", &payment.from_time),
            ("RjctTm", &payment.reject_time),
        ];
        if times.iter().any(|(_, time)| time.is_some()) {
            self.group("SttlmTmReq", |xml| {
                for (tag, time) in times {
                    xml.optional(tag, time.as_deref());
                }
            });
        }
        self.text("ChrgBr", "SLEV");
        self.institution("InstdAgt", &payment.receiver);
        self.party("Dbtr", &payment.debtor);
        self.sender("DbtrAgt");
        self.institution("CdtrAgt", &payment.receiver);
        self.party("Cdtr", &payment.creditor);
        if let Some(remittance) = &payment.remittance {
            self.group("RmtInf", |xml| xml.text("Ustrd", remittance));
        }
    }

    fn party(&mut self, tag: &str, party: &Party) {
        self.group(tag, |xml| xml.text("Nm", &party.name));
        let account = |xml: &mut Self, id: &dyn Fn(&mut Self)| {
            xml.group(&format!("{tag}Acct"), |xml| xml.group("Id", |xml| id(xml)));
        };
        match (&party.iban, &party.account) {
            (Some(iban), _) => account(self, &|xml| xml.text("IBAN", iban)),
            (None, Some(other)) => account(self, &|xml| {
                xml.group("Othr", |xml| xml.text("Id", other));
            }),
            (None, None) => {}
        }
    }

    fn returned(&mut self, returned: &Return) {
        self.document("pacs.004.001.09", "PmtRtr", |xml| {
            xml.group("GrpHdr", |xml| {
                xml.head(&returned.message_id, returned.payments.len());
            });
            for payment in &returned.payments {
                xml.group("TxInf", |xml| {
                    xml.text("RtrId", &payment.return_id);
                    xml.original(&payment.original);
                    xml.amount("RtrdIntrBkSttlmAmt", &payment.amount);
                    xml.text("IntrBkSttlmDt", &returned.business_date);
                    xml.institution("InstdAgt", &payment.receiver);
                    xml.reason("RtrRsnInf", &payment.reason);
                });
            }
        });
    }

    fn original(&mut self, original: &Original) {
        self.optional("OrgnlTxId", original.transaction_id.as_deref());
        self.optional("OrgnlUETR", original.uetr.as_deref());
    }

    fn reason(&mut self, tag: &str, code: &str) {
        self.group(tag, |xml| xml.group("Rsn", |xml| xml.text("Cd", code)));
    }

    fn cancellation(&mut self, cancellation: &Cancellation) {
        self.document("camt.056.001.08", "FIToFIPmtCxlReq", |xml| {
            xml.group("Assgnmt", |xml| {
                xml.text("Id", &cancellation.message_id);
                xml.group("Assgnr", |xml| xml.sender("Agt"));
                // The clearing house, which needs no name of its own here.
                xml.group("Assgne", |xml| {
                    xml.group("Pty", |xml| xml.text("Nm", "Clearing house"))
                });
                xml.created();
            });
            xml.group("CtrlData", |xml| {
                xml.text("NbOfTxs", &cancellation.payments.len().to_string());
            });
            xml.group("Undrlyg", |xml| {
                for payment in &cancellation.payments {
                    xml.group("TxInf", |xml| {
                        xml.text("CxlId", &payment.cancellation_id);
                        xml.original(&payment.original);
                        xml.amount("OrgnlIntrBkSttlmAmt", &payment.amount);
                        xml.text("OrgnlIntrBkSttlmDt", &payment.business_date);
                        xml.reason("CxlRsnInf", &payment.reason);
                    });
                }
            });
        });
    }

    fn status_request(&mut self, request: &StatusRequest) {
        self.document("pacs.028.001.03", "FIToFIPmtStsReq", |xml| {
            xml.group("GrpHdr", |xml| {
                xml.text("MsgId", &request.message_id);
                xml.created();
                xml.sender("InstgAgt");
            });
            for original in &request.payments {
                xml.group("TxInf", |xml| xml.original(original));
            }
        });
    }
}

/// Where in the JSON stands what a place in its XML ([`crate::read::Fault::path`]) speaks of: `transfer.payments[2].amount`.
#[must_use]
pub fn place(message: &Message, path: &str) -> String {
    let mut place = match message {
        Message::Transfer(_) => "transfer",
        Message::Return(_) => "return",
        Message::Cancellation(_) => "cancellation",
        Message::StatusRequest(_) => "status_request",
    }
    .to_owned();
    for element in path.split('/') {
        let (name, number) = match element.split_once('[') {
            Some((name, rest)) => (name, rest.trim_end_matches(']').parse::<usize>().ok()),
            None => (element, None),
        };
        let field = match name {
            "CdtTrfTxInf" | "TxInf" => {
                place.push_str(".payments");
                if let Some(index) = number.and_then(|number| number.checked_sub(1)) {
                    place.push_str(&format!("[{index}]"));
                }
                continue;
            }
            "MsgId" | "Assgnmt" => "message_id",
            "UETR" => "uetr",
            "TxId" => "transaction_id",
            "OrgnlUETR" => "original.uetr",
            "OrgnlTxId" => "original.transaction_id",
            "EndToEndId" => "end_to_end_id",
            "InstrId" => "instruction_id",
            "IntrBkSttlmAmt" | "RtrdIntrBkSttlmAmt" | "OrgnlIntrBkSttlmAmt" => "amount",
            "InstdAgt" => "receiver",
            "FrTm" => "from_time",
            "TillTm" => "warn_time",
            "RjctTm" => "reject_time",
            "Dbtr" => "debtor.name",
            "DbtrAcct" => "debtor.account",
            "Cdtr" => "creditor.name",
            "CdtrAcct" => "creditor.account",
            "RmtInf" => "remittance",
            "RtrId" => "return_id",
            "CxlId" => "cancellation_id",
            "RtrRsnInf" | "CxlRsnInf" => "reason",
            "OrgnlIntrBkSttlmDt" => "business_date",
            // Of the whole message.
            "IntrBkSttlmDt" => {
                place.truncate(place.find('.').unwrap_or(place.len()));
                "business_date"
            }
            _ => continue,
        };
        place.push('.');
        place.push_str(field);
        break;
    }
    place
}
