package provider

// The vocabulary of the bodies. The tables are never written to. They are long enough that a compressor finds about as many repetitions between two
// bodies as it finds in real ones, and they hold what breaks careless receivers: letters outside of ASCII, escapes, brackets inside of strings.

// name is a name and its spelling in e-mail addresses and logins.
type name struct{ full, plain string }

var givenNames = []name{
	{"Amara", "amara"}, {"Anneliese", "anneliese"}, {"Bao", "bao"}, {"Beatriz", "beatriz"}, {"Callum", "callum"}, {"Chiara", "chiara"},
	{"Dmitri", "dmitri"}, {"Eilidh", "eilidh"}, {"Emeka", "emeka"}, {"Farah", "farah"}, {"François", "francois"}, {"Greta", "greta"},
	{"Hana", "hana"}, {"Idris", "idris"}, {"Inés", "ines"}, {"Jonas", "jonas"}, {"Kaito", "kaito"}, {"Keisha", "keisha"},
	{"Leandro", "leandro"}, {"Lotte", "lotte"}, {"Magnus", "magnus"}, {"Mei", "mei"}, {"Nadia", "nadia"}, {"Noor", "noor"},
	{"Oskar", "oskar"}, {"Paloma", "paloma"}, {"Quentin", "quentin"}, {"Rosalind", "rosalind"}, {"Ruairí", "ruairi"}, {"Saoirse", "saoirse"},
	{"Søren", "soren"}, {"Tamsin", "tamsin"}, {"Thabo", "thabo"}, {"Ugo", "ugo"}, {"Vera", "vera"}, {"Wren", "wren"},
	{"Xiomara", "xiomara"}, {"Yusuf", "yusuf"}, {"Zoë", "zoe"}, {"Zbigniew", "zbigniew"},
}

var familyNames = []name{
	{"Abernathy", "abernathy"}, {"Achterberg", "achterberg"}, {"Adeyemi", "adeyemi"}, {"Bianchi", "bianchi"}, {"Brandvold", "brandvold"}, {"Castellanos", "castellanos"},
	{"Chowdhury", "chowdhury"}, {"Delacroix", "delacroix"}, {"Dimitrov", "dimitrov"}, {"Eriksen", "eriksen"}, {"Fitzwilliam", "fitzwilliam"}, {"Fujimoto", "fujimoto"},
	{"García", "garcia"}, {"Goldschmidt", "goldschmidt"}, {"Haddad", "haddad"}, {"Hollingworth", "hollingworth"}, {"Ivanova", "ivanova"}, {"Jankowski", "jankowski"},
	{"Kaplan", "kaplan"}, {"Kowalczyk", "kowalczyk"}, {"Lindqvist", "lindqvist"}, {"Lachance", "lachance"}, {"Mbeki", "mbeki"}, {"McAllister", "mcallister"},
	{"Müller", "muller"}, {"Nakagawa", "nakagawa"}, {"Novák", "novak"}, {"Okonkwo", "okonkwo"}, {"O'Donnell", "odonnell"}, {"Petrosyan", "petrosyan"},
	{"Quispe", "quispe"}, {"Rasmussen", "rasmussen"}, {"Silverstein", "silverstein"}, {"Takahashi", "takahashi"}, {"Thistlewood", "thistlewood"}, {"Vandenberg", "vandenberg"},
	{"Villanueva", "villanueva"}, {"Whitcombe", "whitcombe"}, {"Yamamoto", "yamamoto"}, {"Zielinski", "zielinski"},
}

var mailHosts = []string{
	"gmail.com", "outlook.com", "yahoo.com", "icloud.com", "proton.me", "hotmail.com", "fastmail.com", "gmx.net", "example.org", "mail.example.net",
}

// place is a town with what an address needs. The coordinates are printed as they stand.
type place struct{ city, province, provinceCode, zip, latitude, longitude string }

var places = []place{
	{"Albuquerque", "New Mexico", "NM", "87102", "35.0844", "-106.6504"}, {"Ann Arbor", "Michigan", "MI", "48104", "42.2808", "-83.7430"},
	{"Asheville", "North Carolina", "NC", "28801", "35.5951", "-82.5515"}, {"Austin", "Texas", "TX", "78704", "30.2500", "-97.7600"},
	{"Boise", "Idaho", "ID", "83702", "43.6150", "-116.2023"}, {"Brooklyn", "New York", "NY", "11211", "40.7128", "-73.9540"},
	{"Burlington", "Vermont", "VT", "05401", "44.4759", "-73.2121"}, {"Charleston", "South Carolina", "SC", "29401", "32.7765", "-79.9311"},
	{"Chattanooga", "Tennessee", "TN", "37402", "35.0456", "-85.3097"}, {"Des Moines", "Iowa", "IA", "50309", "41.5868", "-93.6250"},
	{"Duluth", "Minnesota", "MN", "55802", "46.7867", "-92.1005"}, {"Eugene", "Oregon", "OR", "97401", "44.0521", "-123.0868"},
	{"Fort Collins", "Colorado", "CO", "80524", "40.5853", "-105.0844"}, {"Honolulu", "Hawaii", "HI", "96813", "21.3069", "-157.8583"},
	{"Lancaster", "Pennsylvania", "PA", "17602", "40.0379", "-76.3055"}, {"Madison", "Wisconsin", "WI", "53703", "43.0731", "-89.4012"},
	{"Missoula", "Montana", "MT", "59801", "46.8721", "-113.9940"}, {"Oakland", "California", "CA", "94607", "37.8044", "-122.2712"},
	{"Portland", "Maine", "ME", "04101", "43.6591", "-70.2568"}, {"Providence", "Rhode Island", "RI", "02903", "41.8240", "-71.4128"},
	{"Santa Fe", "New Mexico", "NM", "87501", "35.6870", "-105.9378"}, {"Savannah", "Georgia", "GA", "31401", "32.0809", "-81.0912"},
	{"Spokane", "Washington", "WA", "99201", "47.6588", "-117.4260"}, {"Tulsa", "Oklahoma", "OK", "74103", "36.1540", "-95.9928"},
}

var streets = []string{
	"Alder Street", "Birch Lane", "Canal Road", "Dogwood Drive", "East 4th Avenue", "Fairmount Place", "Granite Way", "Hollis Street", "Ironbridge Road", "Juniper Court",
	"Kestrel Avenue", "Larkspur Lane", "Mill Pond Road", "North Ridge Boulevard", "Old Quarry Road", "Pemberton Street", "Quince Street", "Riverside Terrace", "South Meridian", "Tannery Row",
}

var adjectives = []string{
	"Alpine", "Amber", "Botanical", "Brushed", "Cedar", "Coastal", "Copper", "Dappled", "Everyday", "Featherweight", "Foldable", "Glazed", "Hand-dyed", "Heritage", "Insulated", "Linen",
	"Magnetic", "Matte", "Merino", "Moss", "Nordic", "Organic", "Packable", "Quilted", "Recycled", "Reversible", "Rustic", "Seaside", "Stoneware", "Thermal", "Velvet", "Waxed",
}

var products = []string{
	"Apron", "Backpack", "Bath Towel", "Beanie", "Bookend", "Candle", "Carafe", "Cardigan", "Coffee Grinder", "Cutting Board", "Desk Lamp", "Duffel", "Espresso Cup", "Field Notebook", "Floor Cushion",
	"Garden Trowel", "Hammock", "Jewelry Box", "Kettle", "Lunch Tin", "Mug", "Night Light", "Overshirt", "Pillowcase", "Planter", "Raincoat", "Salt Cellar", "Scarf", "Serving Bowl", "Socks", "Tea Strainer", "Throw Blanket",
}

var variants = []string{"Small", "Medium", "Large", "X-Large", "One Size", "Slate / M", "Ochre / L", "Ivory / S", "Forest / XL", "12 oz", "16 oz", "Set of 2", "Set of 4", "Navy", "Charcoal", "Terracotta"}

var vendors = []string{"Larkfield & Sons", "Ostrava Goods", "Pine Hollow", "Saltmarsh Supply", "Tidewater Mercantile", "Kiln & Co", "Northbound", "Hazel Street Studio"}

// notes are what customers write to a shop. Like sentences they are JSON text: quotes and line breaks in them are escaped already.
var notes = []string{
	"Please leave with the neighbour at no. 7.", "It is a gift, no invoice in the parcel please!", `Ring twice \u2014 the bell is slow.`, `Engraving: \"For L. & M.\"`, `Call before delivery.\nGate code 4411#`,
	"Can this arrive before the 14th?", "Same address as last time [the blue door].", "Ersatz bitte in Größe {L}, falls ausverkauft.",
}

// sentences are JSON text: quotes and line breaks in them are escaped already.
var sentences = []string{
	"The retry loop never backs off when the upstream answers 429.",
	"Steps to reproduce are below; it happens on about one run in twenty.",
	"I bisected this to the change that moved validation into the reader.",
	"After the upgrade the parser rejects `{\\\"items\\\": []}` with an unexpected end of input.",
	"Happy to send a patch if somebody can confirm that this is the intended behaviour.",
	"Expected the cache to be warm after the first request, but every call misses.",
	"This keeps the public interface as it is and only changes the default.",
	"The flaky test was waiting for a log line instead of the state behind it.",
	"Closes the connection before the trailer is read, so the checksum is never compared.",
	"On Windows the path separator ends up in the generated name \\\\ see the attached log.",
	"Memory grows by roughly 3 MB an hour under a constant load.",
	"Documentation says milliseconds, the code reads seconds.",
	"Splits the migration in two so that it can be rolled back halfway.",
	"We hit this in production twice last week; the workaround is to restart the consumer.",
	"Adds a benchmark and a regression test for the empty input.",
	"The second argument is ignored since the refactoring of the option parser.",
	"Reviewed together with the storage team, no schema change is needed.",
	"CI is red because of the linter, not because of this change.",
	"```go\\nfor i := range jobs {\\n\\tgo run(i) // who waits for this?\\n}\\n```",
	"It also fixes a typo in the error message: \\\"recvd\\\" -> \\\"received\\\".",
	"Rendering takes 800 ms with a cold cache and 40 ms afterwards.",
	"Please squash before merging, the intermediate commits do not build.",
	"The timeout is shared between all requests of the session [see discussion in the thread].",
	"Nobody noticed since the metric is only recorded on success.",
}

var subjects = []string{
	"Back off when the upstream is rate limited", "Reader drops the last record of a chunk", "Make the default timeout configurable", "Panic on an empty manifest", "Support nested includes",
	"Do not log request bodies", "Typo in the getting started guide", "Deadlock between flush and close", "Wrong locale used for number formatting", "Upgrade the parser to the new grammar",
	"Cache headers are missing on redirects", "Memory leak in the watcher", "Stop copying the buffer twice", "Flaky test: TestResume", "Show the offending line in errors",
	"Handle renamed files in the index", "Dates before 1970 are rejected", "Remove the deprecated flag", "Retry on connection reset", "Validate webhook signatures in constant time",
}

var repoWords = []string{
	"anvil", "beacon", "cargo", "dispatch", "ember", "ferry", "gantry", "harbor", "inlet", "jigsaw", "kiln", "lattice", "mosaic", "nimbus", "orbit", "parcel", "quarry", "relay", "spindle", "tally", "vault", "weaver",
}

var repoKinds = []string{"api", "cli", "core", "docs", "infra", "proxy", "sdk", "ui", "web", "worker"}

var languages = []string{"Go", "TypeScript", "Ruby", "Python", "Rust", "Kotlin", "Elixir", "C"}
