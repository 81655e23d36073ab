//! Names and places of invented people and firms, in the scripts that real traffic carries.

/// Where a customer lives, and how names look there.
pub(crate) struct Locale {
    pub(crate) country: &'static str,
    pub(crate) given: &'static [&'static str],
    pub(crate) family: &'static [&'static str],
    pub(crate) firms: &'static [&'static str],
    pub(crate) streets: &'static [&'static str],
    pub(crate) towns: &'static [&'static str],
    /// Digits of the national part of an IBAN; 0 where accounts have no IBAN.
    pub(crate) iban_digits: usize,
    /// Share among the customers, relative to the others.
    pub(crate) weight: u64,
}

/// Every script that the receivers must give back byte for byte.
pub(crate) const LOCALES: &[Locale] = &[
    Locale {
        country: "DE",
        given: &[
            "Jürgen",
            "Käthe",
            "Björn",
            "Anneliese",
            "Sönke",
            "Frauke",
            "Günther",
            "Ute",
        ],
        family: &[
            "Müller",
            "Weiß",
            "Schröder",
            "Größmann",
            "Köhler",
            "Jäger",
            "Vogt",
            "Bäumler",
        ],
        firms: &[
            "Müller & Söhne GmbH",
            "Nordlicht Energie AG",
            "Bäckerei Größmann OHG",
            "Rheinhafen Logistik SE",
        ],
        streets: &[
            "Königstraße",
            "Am Mühlbach",
            "Lindenallee",
            "Große Bleichen",
            "Schloßgäßchen",
        ],
        towns: &["Köln", "Düsseldorf", "Görlitz", "Würzburg", "Lübeck"],
        iban_digits: 18,
        weight: 22,
    },
    Locale {
        country: "ES",
        given: &["Íñigo", "María José", "Begoña", "Ángel", "Nuria", "Andrés"],
        family: &[
            "Núñez García",
            "Ibáñez",
            "Peña Ordóñez",
            "López",
            "Muñoz Yáñez",
        ],
        firms: &[
            "Señales y Raíles S.A.",
            "Compañía Olivarera de Jaén S.L.",
            "Astilleros Coruña S.A.",
        ],
        streets: &[
            "Calle de Alcalá",
            "Avenida de la Constitución",
            "Plaza de España",
            "Paseo de Gràcia",
        ],
        towns: &["Málaga", "A Coruña", "León", "Cáceres"],
        iban_digits: 20,
        weight: 14,
    },
    Locale {
        country: "PL",
        given: &["Łukasz", "Małgorzata", "Świętosława", "Krzysztof", "Żaneta"],
        family: &[
            "Wiśniewski",
            "Dąbrowska",
            "Żółkiewski",
            "Gałązka",
            "Pszczółka",
        ],
        firms: &[
            "Zakłady Chemiczne „Wisła” S.A.",
            "Piekarnia Świeży Chleb sp. z o.o.",
            "Gdańska Żegluga S.A.",
        ],
        streets: &[
            "ul. Świętokrzyska",
            "al. Niepodległości",
            "ul. Długa",
            "plac Zbawiciela",
        ],
        towns: &["Łódź", "Gdańsk", "Wrocław", "Częstochowa"],
        iban_digits: 24,
        weight: 12,
    },
    Locale {
        country: "CZ",
        given: &["Jiří", "Zdeněk", "Růžena", "Václav", "Tereza"],
        family: &["Dvořák", "Němcová", "Říha", "Kučera", "Šťastný"],
        firms: &[
            "Pražské strojírny a.s.",
            "Třeboňské rybářství s.r.o.",
            "Sklárny Železný Brod a.s.",
        ],
        streets: &["Václavské náměstí", "Příkopy", "Žižkova", "Nábřeží míru"],
        towns: &["Plzeň", "České Budějovice", "Ústí nad Labem", "Brno"],
        iban_digits: 20,
        weight: 8,
    },
    Locale {
        country: "PT",
        given: &["João", "Conceição", "Inês", "Sebastião"],
        family: &["Magalhães", "Gonçalves", "Simões", "Falcão"],
        firms: &[
            "Cortiças do Alentejo, S.A.",
            "O’Neill & Irmãos, Lda.",
            "Armações Açorianas, S.A.",
        ],
        streets: &[
            "Rua Augusta",
            "Avenida da Liberdade",
            "Praça do Comércio",
            "Travessa São João",
        ],
        towns: &["Évora", "Setúbal", "Guimarães", "Portimão"],
        iban_digits: 21,
        weight: 8,
    },
    Locale {
        country: "UA",
        given: &["Олександр", "Ганна", "Юрій", "Соломія"],
        family: &["Шевченко", "Їжакевич", "Ґудзь", "Коваленко"],
        firms: &[
            "ТОВ «Дніпровські млини»",
            "ПрАТ «Карпатський ліс»",
            "ТОВ «Під’їзд»",
        ],
        streets: &["вул. Хрещатик", "просп. Свободи", "вул. Січових Стрільців"],
        towns: &["Київ", "Львів", "Чернігів"],
        iban_digits: 25,
        weight: 7,
    },
    Locale {
        country: "RS",
        given: &["Ђорђе", "Љиљана", "Никола", "Џејна"],
        family: &["Његош", "Ћирић", "Живковић", "Петровић"],
        firms: &["Железара Смедерево д.о.о.", "Шећерана Црвенка а.д."],
        streets: &["Кнеза Михаила", "Булевар ослобођења", "Његошева"],
        towns: &["Београд", "Ниш", "Крагујевац"],
        iban_digits: 18,
        weight: 5,
    },
    Locale {
        country: "GR",
        given: &["Γεώργιος", "Ελένη", "Αθηνά", "Οδυσσέας"],
        family: &["Παπαδόπουλος", "Ξενάκης", "Χατζηδάκη", "Αναγνώστου"],
        firms: &[
            "Ελαιουργία Καλαμάτας Α.Ε.",
            "Ναυτιλιακή Αιγαίου Α.Ε.",
            "Αφοί Ψαρρά Ο.Ε.",
        ],
        streets: &["Οδός Ερμού", "Λεωφόρος Συγγρού", "Πλατεία Ομονοίας"],
        towns: &["Αθήνα", "Θεσσαλονίκη", "Ηράκλειο"],
        iban_digits: 23,
        weight: 8,
    },
    Locale {
        country: "CN",
        given: &["伟", "秀英", "建国", "晓明", "丽华"],
        family: &["王", "李", "欧阳", "陈", "诸葛"],
        firms: &[
            "上海东方机械有限公司",
            "深圳市海纳电子股份有限公司",
            "成都天府茶业集团",
        ],
        streets: &["南京东路", "深南大道", "人民中路", "建设街"],
        towns: &["上海市", "深圳市", "成都市"],
        iban_digits: 0,
        weight: 6,
    },
    Locale {
        country: "JP",
        given: &["翔太", "さくら", "健一", "美咲"],
        family: &["佐藤", "髙橋", "渡邊", "小林"],
        firms: &[
            "株式会社さくら精機",
            "合同会社ヤマト水産",
            "東海電子工業株式会社",
        ],
        streets: &["丸の内", "本町", "中央通り"],
        towns: &["東京都千代田区", "大阪市中央区", "名古屋市中区"],
        iban_digits: 0,
        weight: 5,
    },
    Locale {
        country: "AE",
        given: &["محمد", "فاطمة", "يوسف", "مريم"],
        family: &["العلي", "المنصوري", "الخطيب", "القاسم"],
        firms: &[
            "شركة الخليج للتجارة ذ.م.م",
            "مؤسسة النخيل للمقاولات",
            "مجموعة اللؤلؤة",
        ],
        streets: &["شارع الشيخ زايد", "شارع الكورنيش", "شارع المطار"],
        towns: &["دبي", "أبوظبي", "الشارقة"],
        iban_digits: 19,
        weight: 5,
    },
];

/// Purpose codes of the ISO 20022 external list.
pub(crate) const PURPOSES: &[&str] = &[
    "SALA", "SUPP", "GDDS", "TAXS", "RENT", "PENS", "SCVE", "CBFF", "ELEC",
];

/// Category purpose codes of the ISO 20022 external list.
pub(crate) const CATEGORIES: &[&str] = &["SALA", "SUPP", "TAXS", "PENS", "CASH", "TREA"];

/// What payers write when nothing tells them how.
pub(crate) const REMITTANCES: &[&str] = &[
    "Rechnung vom Monatsende, danke schön",
    "Loyer et charges — règlement n° 11",
    "Opłata za usługi, zgodnie z umową",
    "Оплата за договором, без ПДВ",
    "Πληρωμή τιμολογίου",
    "货款 第三批",
    "商品代金として",
    "دفعة مقابل خدمات",
    "Invoice settlement <urgent> & final",
    "Salary November",
];

/// First words of the names of invented banks.
pub(crate) const BANK_NAMES: &[&str] = &[
    "Amber",
    "Beacon",
    "Cedar",
    "Dolmen",
    "Estuary",
    "Falcon",
    "Granite",
    "Harbour",
    "Ivory",
    "Juniper",
    "Kestrel",
    "Lantern",
    "Meridian",
    "Nimbus",
    "Orchard",
    "Pilgrim",
    "Quarry",
    "Rivermouth",
    "Saffron",
    "Tidewater",
    "Umber",
    "Vesper",
    "Willow",
    "Yarrow",
    "Zenith",
];

/// Second words of the names of invented banks.
pub(crate) const BANK_KINDS: &[&str] = &[
    "Bank",
    "Savings Bank",
    "Trust",
    "Cooperative Bank",
    "Handelsbank",
    "Banque",
    "Banca",
    "Caixa",
];

/// Country and location parts of the invented business identifier codes.
pub(crate) const BANK_PLACES: &[&str] = &[
    "DEFF", "FRPP", "NL2A", "BEBB", "ITMM", "ESMM", "ATWW", "IE2D", "PTPL", "FIHH", "LULL", "GRAA",
    "PLPW", "CZPP", "SEGG", "GB2L", "JPJT", "KWKW", "AEAD", "CHZZ",
];
