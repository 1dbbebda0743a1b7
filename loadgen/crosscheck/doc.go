// Package crosscheck measures the same endpoint with two load generators in turn, vegeta and floodproof's own, so that nobody has to believe either.
//
// Both send the same kind of request at the same constant rate with the same number of requests in flight at most; request n is due n+1 gaps after the begin of
// its round, as vegeta's constant pacer has it. They differ in where their clock begins. vegeta's begins when a worker picks the request up: what
// waits because all workers wait for answers waits for nothing in its report, which is known as coordinated omission
// (https://github.com/tsenart/vegeta/issues/223, https://github.com/fortio/fortio/issues/3). floodproof's begins when the request was due. With a constant
// rate that instant can be told from vegeta's results too, so that each of its latencies is shown from both.
package crosscheck
