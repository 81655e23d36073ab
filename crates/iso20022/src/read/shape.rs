//! The published order and cardinality of the elements that are read, as tables.
//!
//! Only the parts that decide something have a table: headers, the direct children of a transaction, agents, payment type
//! and settlement. What stands below them has none and is carried unchanged. Versions differ by few elements, so one table
//! serves all versions of a message and an element states the versions it is of. Sources: the ISO 20022 schemas
//! pacs.008.001.06 to .13, pacs.009.001.07 to .12, pacs.004.001.09 to .14, pacs.028.001.03 to .06, camt.056.001.08 to .12,
//! camt.060.001.05 to .07 and head.001.001.01 to .04.

/// What a read element means. Whether it stands in the group header or in a transaction, the gatherer knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// Structure only.
    None,
    /// A creation time: not part of the digest.
    Creation,
    // Business header.
    HeaderFrom,
    HeaderTo,
    HeaderId,
    HeaderDefinition,
    HeaderService,
    HeaderCopy,
    HeaderPossibleDuplicate,
    // Group header.
    Group,
    MessageId,
    Count,
    ControlSum,
    Total,
    Method,
    GroupReturn,
    // Group or transaction.
    Date,
    InstructionPriority,
    Channel,
    LocalInstrument,
    Instructing,
    Instructed,
    AgentBic,
    // Transaction.
    Transaction,
    InstructionId,
    EndToEndId,
    TransactionId,
    Uetr,
    ClearingReference,
    Amount,
    SettlementPriority,
    ClsTime,
    From,
    Till,
    Reject,
    ChargeBearer,
    Cover,
    // Returns, cancellations, status requests.
    OriginalInstructionId,
    OriginalEndToEndId,
    OriginalTransactionId,
    OriginalUetr,
    OriginalAmount,
    OriginalDate,
    ReasonCode,
    OriginalMessageId,
    OriginalMessageName,
    OriginalGroup,
    /// A return's `OrgnlGrpInf` for all of its transactions: carried beside them.
    ReturnedGroup,
    GroupCancellation,
    Assigner,
    // Report requests.
    Report,
    ReportName,
    ReportCurrency,
    ReportFromDate,
    ReportToDate,
    ReportFromSequence,
    ReportToSequence,
    ReportEqual,
}

/// An element whose children are checked.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) children: &'static [Child],
    /// Exactly one of the children, rather than all in order.
    pub(crate) choice: bool,
}

/// One child of a [`Node`].
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) name: &'static str,
    pub(crate) field: Field,
    pub(crate) node: Option<&'static Node>,
    pub(crate) many: bool,
    pub(crate) required: bool,
    versions: (u8, u8),
}

impl Child {
    const fn many(mut self) -> Self {
        self.many = true;
        self
    }

    const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    const fn from(mut self, version: u8) -> Self {
        self.versions.0 = version;
        self
    }

    const fn to(mut self, version: u8) -> Self {
        self.versions.1 = version;
        self
    }

    const fn of(mut self, node: &'static Node) -> Self {
        self.node = Some(node);
        self
    }

    /// Whether a version of the message has this element.
    pub(crate) const fn in_version(&self, version: u8) -> bool {
        self.versions.0 <= version && version <= self.versions.1
    }
}

const fn read(name: &'static str, field: Field) -> Child {
    Child {
        name,
        field,
        node: None,
        many: false,
        required: false,
        versions: (0, u8::MAX),
    }
}

/// An element that is carried, whatever is in it.
const fn carried(name: &'static str) -> Child {
    read(name, Field::None)
}

const fn all(children: &'static [Child]) -> Node {
    Node {
        children,
        choice: false,
    }
}

const fn one_of(children: &'static [Child]) -> Node {
    Node {
        children,
        choice: true,
    }
}

// Shared parts.

static INSTITUTION: Node = all(&[
    read("BICFI", Field::AgentBic),
    carried("ClrSysMmbId"),
    carried("LEI"),
    carried("Nm"),
    carried("PstlAdr"),
    carried("Othr"),
]);
static AGENT: Node = all(&[
    carried("FinInstnId").required().of(&INSTITUTION),
    carried("BrnchId"),
]);
static LOCAL_INSTRUMENT: Node = one_of(&[carried("Cd"), read("Prtry", Field::LocalInstrument)]);
static PAYMENT_TYPE: Node = all(&[
    read("InstrPrty", Field::InstructionPriority),
    read("ClrChanl", Field::Channel),
    carried("SvcLvl").many(),
    carried("LclInstrm").of(&LOCAL_INSTRUMENT),
    carried("CtgyPurp"),
]);
static SETTLEMENT: Node = all(&[
    read("SttlmMtd", Field::Method).required(),
    carried("SttlmAcct"),
    carried("ClrSys"),
    carried("InstgRmbrsmntAgt"),
    carried("InstgRmbrsmntAgtAcct"),
    carried("InstdRmbrsmntAgt"),
    carried("InstdRmbrsmntAgtAcct"),
    carried("ThrdRmbrsmntAgt"),
    carried("ThrdRmbrsmntAgtAcct"),
]);
static TIMES: Node = all(&[
    read("CLSTm", Field::ClsTime),
    read("TillTm", Field::Till),
    read("FrTm", Field::From),
    read("RjctTm", Field::Reject),
]);
static PAYMENT_ID: Node = all(&[
    read("InstrId", Field::InstructionId),
    read("EndToEndId", Field::EndToEndId).required(),
    // Required up to pacs.008.001.07; where it is missing the payment alone is refused.
    read("TxId", Field::TransactionId),
    read("UETR", Field::Uetr).from(8),
    read("ClrSysRef", Field::ClearingReference),
]);
static REASON: Node = one_of(&[read("Cd", Field::ReasonCode), carried("Prtry")]);
static REASON_INFORMATION: Node = all(&[
    carried("Orgtr"),
    carried("Rsn").of(&REASON),
    carried("AddtlInf").many(),
]);

// pacs.008

/// The group header of pacs.008 and pacs.009, which differ in the version that brought the expiry.
const fn transfer_group(expiry_from: u8) -> [Child; 12] {
    [
        read("MsgId", Field::MessageId),
        read("CreDtTm", Field::Creation).required(),
        carried("XpryDtTm").from(expiry_from),
        carried("BtchBookg"),
        read("NbOfTxs", Field::Count).required(),
        read("CtrlSum", Field::ControlSum),
        read("TtlIntrBkSttlmAmt", Field::Total),
        read("IntrBkSttlmDt", Field::Date),
        carried("SttlmInf").required().of(&SETTLEMENT),
        carried("PmtTpInf").of(&PAYMENT_TYPE),
        read("InstgAgt", Field::Instructing).of(&AGENT),
        read("InstdAgt", Field::Instructed).of(&AGENT),
    ]
}

static CUSTOMER_GROUP_CHILDREN: [Child; 12] = transfer_group(13);
static CUSTOMER_GROUP: Node = all(&CUSTOMER_GROUP_CHILDREN);
static CUSTOMER_TRANSACTION: Node = all(&[
    carried("PmtId").required().of(&PAYMENT_ID),
    carried("PmtTpInf").of(&PAYMENT_TYPE),
    // Required by the schema; where it is missing the payment alone is refused.
    read("IntrBkSttlmAmt", Field::Amount),
    read("IntrBkSttlmDt", Field::Date),
    read("SttlmPrty", Field::SettlementPriority),
    carried("SttlmTmIndctn"),
    carried("SttlmTmReq").of(&TIMES),
    carried("AccptncDtTm").to(12),
    carried("PoolgAdjstmntDt").to(12),
    carried("AddtlDtTm").from(13),
    carried("InstdAmt"),
    carried("XchgRate"),
    carried("AgrdRate").from(13),
    read("ChrgBr", Field::ChargeBearer).required(),
    carried("ChrgsInf").many(),
    carried("MndtRltdInf").from(9),
    carried("PmtSgntr").from(13),
    carried("PrvsInstgAgt").to(6),
    carried("PrvsInstgAgtAcct").to(6),
    carried("PrvsInstgAgt1").from(7),
    carried("PrvsInstgAgt1Acct").from(7),
    carried("PrvsInstgAgt2").from(7),
    carried("PrvsInstgAgt2Acct").from(7),
    carried("PrvsInstgAgt3").from(7),
    carried("PrvsInstgAgt3Acct").from(7),
    read("InstgAgt", Field::Instructing).of(&AGENT),
    read("InstdAgt", Field::Instructed).of(&AGENT),
    carried("IntrmyAgt1"),
    carried("IntrmyAgt1Acct"),
    carried("IntrmyAgt2"),
    carried("IntrmyAgt2Acct"),
    carried("IntrmyAgt3"),
    carried("IntrmyAgt3Acct"),
    carried("UltmtDbtr"),
    carried("InitgPty"),
    carried("Dbtr").required(),
    carried("DbtrAcct"),
    carried("DbtrAgt").required(),
    carried("DbtrAgtAcct"),
    carried("CdtrAgt").required(),
    carried("CdtrAgtAcct"),
    carried("Cdtr").required(),
    carried("CdtrAcct"),
    carried("UltmtCdtr"),
    carried("InstrForCdtrAgt").many(),
    carried("InstrForNxtAgt").many(),
    carried("Purp"),
    carried("RgltryRptg").many(),
    carried("Tax"),
    carried("RltdRmtInf").many(),
    carried("RmtInf"),
    carried("SplmtryData").many(),
]);
static CUSTOMER: Node = all(&[
    read("GrpHdr", Field::Group).required().of(&CUSTOMER_GROUP),
    read("CdtTrfTxInf", Field::Transaction)
        .required()
        .many()
        .of(&CUSTOMER_TRANSACTION),
    carried("SplmtryData").many(),
]);

// pacs.009

static BANK_GROUP_CHILDREN: [Child; 12] = transfer_group(12);
static BANK_GROUP: Node = all(&BANK_GROUP_CHILDREN);

static BANK_TRANSACTION: Node = all(&[
    carried("PmtId").required().of(&PAYMENT_ID),
    carried("PmtTpInf").of(&PAYMENT_TYPE),
    read("IntrBkSttlmAmt", Field::Amount),
    read("IntrBkSttlmDt", Field::Date),
    read("SttlmPrty", Field::SettlementPriority),
    carried("SttlmTmIndctn"),
    carried("SttlmTmReq").of(&TIMES),
    carried("XpryDtTm").from(12),
    carried("PmtSgntr").from(12),
    carried("PrvsInstgAgt1"),
    carried("PrvsInstgAgt1Acct"),
    carried("PrvsInstgAgt2"),
    carried("PrvsInstgAgt2Acct"),
    carried("PrvsInstgAgt3"),
    carried("PrvsInstgAgt3Acct"),
    read("InstgAgt", Field::Instructing).of(&AGENT),
    read("InstdAgt", Field::Instructed).of(&AGENT),
    carried("IntrmyAgt1"),
    carried("IntrmyAgt1Acct"),
    carried("IntrmyAgt2"),
    carried("IntrmyAgt2Acct"),
    carried("IntrmyAgt3"),
    carried("IntrmyAgt3Acct"),
    carried("UltmtDbtr"),
    carried("Dbtr").required(),
    carried("DbtrAcct"),
    carried("DbtrAgt"),
    carried("DbtrAgtAcct"),
    carried("CdtrAgt"),
    carried("CdtrAgtAcct"),
    carried("Cdtr").required(),
    carried("CdtrAcct"),
    carried("UltmtCdtr"),
    carried("InstrForCdtrAgt").many(),
    carried("InstrForNxtAgt").many(),
    carried("Purp"),
    carried("RmtInf"),
    carried("UndrlygAllcn").from(11).many(),
    read("UndrlygCstmrCdtTrf", Field::Cover),
    carried("UndrlygFICdtTrf").from(12),
    carried("SplmtryData").many(),
]);
static BANK: Node = all(&[
    read("GrpHdr", Field::Group).required().of(&BANK_GROUP),
    read("CdtTrfTxInf", Field::Transaction)
        .required()
        .many()
        .of(&BANK_TRANSACTION),
    carried("SplmtryData").many(),
]);

// pacs.004

static RETURN_GROUP: Node = all(&[
    read("MsgId", Field::MessageId),
    read("CreDtTm", Field::Creation).required(),
    carried("Authstn").many(),
    carried("BtchBookg"),
    read("NbOfTxs", Field::Count).required(),
    read("CtrlSum", Field::ControlSum),
    read("GrpRtr", Field::GroupReturn),
    read("TtlRtrdIntrBkSttlmAmt", Field::Total),
    read("IntrBkSttlmDt", Field::Date),
    carried("SttlmInf").required().of(&SETTLEMENT),
    carried("PmtTpInf").of(&PAYMENT_TYPE),
    read("InstgAgt", Field::Instructing).of(&AGENT),
    read("InstdAgt", Field::Instructed).of(&AGENT),
]);
static RETURN_TRANSACTION: Node = all(&[
    read("RtrId", Field::TransactionId),
    carried("OrgnlGrpInf"),
    read("OrgnlInstrId", Field::OriginalInstructionId),
    read("OrgnlEndToEndId", Field::OriginalEndToEndId),
    read("OrgnlTxId", Field::OriginalTransactionId),
    read("OrgnlUETR", Field::OriginalUetr),
    carried("OrgnlClrSysRef"),
    carried("OrgnlIntrBkSttlmAmt"),
    carried("OrgnlIntrBkSttlmDt"),
    carried("PmtTpInf").of(&PAYMENT_TYPE),
    read("RtrdIntrBkSttlmAmt", Field::Amount),
    read("IntrBkSttlmDt", Field::Date),
    read("SttlmPrty", Field::SettlementPriority),
    carried("SttlmTmIndctn"),
    carried("SttlmTmReq").of(&TIMES),
    carried("RtrdInstdAmt"),
    carried("XchgRate"),
    carried("AgrdRate").from(14),
    carried("CompstnAmt"),
    read("ChrgBr", Field::ChargeBearer),
    carried("ChrgsInf").many(),
    read("ClrSysRef", Field::ClearingReference),
    read("InstgAgt", Field::Instructing).of(&AGENT),
    read("InstdAgt", Field::Instructed).of(&AGENT),
    carried("RtrChain"),
    carried("RtrRsnInf").many().of(&REASON_INFORMATION),
    carried("OrgnlTxRef"),
    carried("SplmtryData").many(),
]);
static RETURN: Node = all(&[
    read("GrpHdr", Field::Group).required().of(&RETURN_GROUP),
    read("OrgnlGrpInf", Field::ReturnedGroup),
    read("TxInf", Field::Transaction)
        .many()
        .of(&RETURN_TRANSACTION),
    carried("SplmtryData").many(),
]);

// pacs.028

static ORIGINAL_GROUP: Node = all(&[
    read("OrgnlMsgId", Field::OriginalMessageId).required(),
    read("OrgnlMsgNmId", Field::OriginalMessageName).required(),
    carried("OrgnlCreDtTm"),
    carried("OrgnlNbOfTxs"),
    carried("OrgnlCtrlSum"),
]);
static STATUS_GROUP: Node = all(&[
    read("MsgId", Field::MessageId),
    read("CreDtTm", Field::Creation).required(),
    read("InstgAgt", Field::Instructing).of(&AGENT),
    read("InstdAgt", Field::Instructed).of(&AGENT),
]);
static STATUS_TRANSACTION: Node = all(&[
    read("StsReqId", Field::InstructionId),
    read("OrgnlGrpInf", Field::OriginalGroup).of(&ORIGINAL_GROUP),
    read("OrgnlInstrId", Field::OriginalInstructionId),
    read("OrgnlEndToEndId", Field::OriginalEndToEndId),
    read("OrgnlTxId", Field::OriginalTransactionId),
    read("OrgnlUETR", Field::OriginalUetr),
    carried("AccptncDtTm"),
    carried("ClrSysRef"),
    read("InstgAgt", Field::Instructing).of(&AGENT),
    read("InstdAgt", Field::Instructed).of(&AGENT),
    carried("OrgnlTxRef"),
    carried("SplmtryData").many(),
]);
static STATUS: Node = all(&[
    read("GrpHdr", Field::Group).required().of(&STATUS_GROUP),
    read("OrgnlGrpInf", Field::OriginalGroup)
        .many()
        .of(&ORIGINAL_GROUP),
    read("TxInf", Field::Transaction)
        .many()
        .of(&STATUS_TRANSACTION),
    carried("SplmtryData").many(),
]);

// camt.056 and camt.060: a party is an agent or somebody else, who is named by a BIC as well.

static ORGANISATION: Node = all(&[
    read("AnyBIC", Field::AgentBic),
    carried("LEI"),
    carried("Othr").many(),
]);
static PARTY_ID: Node = one_of(&[carried("OrgId").of(&ORGANISATION), carried("PrvtId")]);
static PARTY: Node = all(&[
    carried("Nm"),
    carried("PstlAdr"),
    carried("Id").of(&PARTY_ID),
    carried("CtryOfRes"),
    carried("CtctDtls"),
]);
static PARTY_OR_AGENT: Node = one_of(&[carried("Pty").of(&PARTY), carried("Agt").of(&AGENT)]);

static ASSIGNMENT: Node = all(&[
    read("Id", Field::MessageId),
    read("Assgnr", Field::Assigner)
        .required()
        .of(&PARTY_OR_AGENT),
    carried("Assgne").required(),
    read("CreDtTm", Field::Creation).required(),
]);
static CONTROL: Node = all(&[
    read("NbOfTxs", Field::Count).required(),
    read("CtrlSum", Field::ControlSum),
]);
static CANCELLED: Node = all(&[
    read("CxlId", Field::InstructionId),
    carried("Case"),
    carried("OrgnlGrpInf"),
    read("OrgnlInstrId", Field::OriginalInstructionId),
    read("OrgnlEndToEndId", Field::OriginalEndToEndId),
    read("OrgnlTxId", Field::OriginalTransactionId),
    read("OrgnlUETR", Field::OriginalUetr),
    carried("OrgnlClrSysRef"),
    read("OrgnlIntrBkSttlmAmt", Field::OriginalAmount),
    read("OrgnlIntrBkSttlmDt", Field::OriginalDate),
    carried("Assgnr"),
    carried("Assgne"),
    carried("CxlRsnInf").many().of(&REASON_INFORMATION),
    carried("OrgnlTxRef"),
    carried("SplmtryData").many(),
]);
static UNDERLYING: Node = all(&[
    read("OrgnlGrpInfAndCxl", Field::GroupCancellation),
    read("TxInf", Field::Transaction).many().of(&CANCELLED),
]);
static CANCELLATION: Node = all(&[
    read("Assgnmt", Field::Group).required().of(&ASSIGNMENT),
    carried("Case"),
    carried("CtrlData").of(&CONTROL),
    carried("Undrlyg").required().many().of(&UNDERLYING),
    carried("SplmtryData").many(),
]);

static REPORT_GROUP: Node = all(&[
    read("MsgId", Field::MessageId),
    read("CreDtTm", Field::Creation).required(),
    read("MsgSndr", Field::Assigner).of(&PARTY_OR_AGENT),
]);
static ACCOUNT: Node = all(&[
    // Optional since the version with proxies.
    carried("Id"),
    carried("Tp"),
    read("Ccy", Field::ReportCurrency),
    carried("Nm"),
    carried("Prxy"),
]);
static FROM_TO_DATE: Node = all(&[
    read("FrDt", Field::ReportFromDate).required(),
    read("ToDt", Field::ReportToDate),
]);
static PERIOD: Node = all(&[
    carried("FrToDt").required().of(&FROM_TO_DATE),
    carried("FrToTm"),
    carried("Tp").required(),
]);
static FROM_TO_SEQUENCE: Node = all(&[
    read("FrSeq", Field::ReportFromSequence).required(),
    read("ToSeq", Field::ReportToSequence).required(),
]);
static SEQUENCE: Node = one_of(&[
    read("FrSeq", Field::ReportFromSequence),
    read("ToSeq", Field::ReportToSequence),
    carried("FrToSeq").many().of(&FROM_TO_SEQUENCE),
    read("EQSeq", Field::ReportEqual).many(),
    carried("NEQSeq").many(),
]);
static REPORT: Node = all(&[
    read("Id", Field::InstructionId),
    read("ReqdMsgNmId", Field::ReportName).required(),
    carried("Acct").of(&ACCOUNT),
    read("AcctOwnr", Field::Assigner)
        .required()
        .of(&PARTY_OR_AGENT),
    carried("AcctSvcr"),
    carried("RptgPrd").of(&PERIOD),
    carried("RptgSeq").of(&SEQUENCE),
    carried("ReqdTxTp"),
    carried("ReqdBalTp").many(),
]);
static REPORTS: Node = all(&[
    read("GrpHdr", Field::Group).required().of(&REPORT_GROUP),
    read("RptgReq", Field::Report).required().many().of(&REPORT),
    carried("SplmtryData").many(),
]);

// head.001

static HEADER_PARTY: Node = one_of(&[carried("OrgId").of(&PARTY), carried("FIId").of(&AGENT)]);

/// The business application header.
pub(crate) static HEADER: Node = all(&[
    carried("CharSet"),
    read("Fr", Field::HeaderFrom).required().of(&HEADER_PARTY),
    read("To", Field::HeaderTo).required().of(&HEADER_PARTY),
    read("BizMsgIdr", Field::HeaderId).required(),
    read("MsgDefIdr", Field::HeaderDefinition).required(),
    read("BizSvc", Field::HeaderService),
    carried("MktPrctc").from(2),
    carried("CreDt").required(),
    carried("BizPrcgDt").from(2),
    read("CpyDplct", Field::HeaderCopy),
    read("PssblDplct", Field::HeaderPossibleDuplicate),
    carried("Prty"),
    carried("Sgntr"),
    carried("Rltd").many(),
]);

/// Kinds of messages that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    Customer,
    Bank,
    Return,
    Cancellation,
    Status,
    Report,
}

macro_rules! documents {
    ($( $definition:ident $name:literal $root:literal $node:ident $from:literal $to:literal; )+) => {
        /// The definition of a message by its name without variant and version, if one of its versions is read.
        pub(crate) fn definition(name: &str, version: u8) -> Option<(Definition, &'static Node)> {
            match name {
                $( $name if ($from..=$to).contains(&version) => {
                    static DOCUMENT: Node = all(&[carried($root).required().of(&$node)]);
                    Some((Definition::$definition, &DOCUMENT))
                } )+
                _ => None,
            }
        }
    };
}

documents! {
    Customer "pacs.008" "FIToFICstmrCdtTrf" CUSTOMER 6 13;
    Bank "pacs.009" "FICdtTrf" BANK 7 12;
    Return "pacs.004" "PmtRtr" RETURN 9 14;
    Status "pacs.028" "FIToFIPmtStsReq" STATUS 3 6;
    Cancellation "camt.056" "FIToFIPmtCxlReq" CANCELLATION 8 12;
    Report "camt.060" "AcctRptgReq" REPORTS 5 7;
}

/// The namespace of every message definition, up to the definition.
pub(crate) const NAMESPACE_PREFIX: &str = "urn:iso:std:iso:20022:tech:xsd:";

/// Splits `pacs.008.001.08` into the name and the version.
pub(crate) fn split_definition(identifier: &str) -> Option<(&str, u8)> {
    let name = identifier.get(..8)?;
    let version = identifier.get(8..)?.strip_prefix(".001.")?;
    let digits = version.len() == 2 && version.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| version.parse().ok().map(|version| (name, version)))?
}
