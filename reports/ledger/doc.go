// Package ledger is the run's memory: every fact that a verdict may rest on, in
// one append-only file, written while the run goes on and read back by
// anybody, at any time.
//
// A ledger holds what was taken outside the pipeline: what the load generator
// sent and was answered, what the downstream received, which faults were
// injected. The verdict is a function of this file alone, so `floodproof judge`
// gives the same answer next year.
//
// # File
//
//	magic "FPLEDGER" | format version (1 byte) | header block | blocks ... | end record in the last block
//	block = length (uint32) | CRC-32C of the payload (uint32) | payload
//	payload = records; record = kind (1 byte) | fields as varints and length-prefixed strings
//
// Times are microseconds since the first instant of the run, as differences to
// the record before. A file that was cut (the runner was killed) reads up to its
// last whole block and reports [ErrNoEnd]: such a run can be looked at, never
// passed.
//
// Note: gob, JSON lines and SQLite were tried on paper. JSON lines cost about
// 220 bytes an event and attempt and 4 s to read for a million; gob cannot be read
// after a cut; SQLite would put the judge on the same engine as the default
// backend that is being judged. `floodproof report RUN --format jsonl` prints the
// file as JSON lines for everybody else.
package ledger
