// Package metrics shows a pipeline to Prometheus: what waits in each lane and how long, what the workers do with it, and how fast and with which answers the
// receiver serves each provider.
//
// # Signals
//
//	floodproof_queue_jobs{lane,state}                      gauge      state: waiting, leased, dead, done
//	floodproof_queue_oldest_seconds{lane}                  gauge      how long the oldest due job waits: the first sign of trouble
//	floodproof_queue_held_seconds{lane}                    gauge      how long the job in hand longest is: a handler that never ends, its lease prolonged again and again
//	floodproof_queue_expired_total{lane}                   counter    done jobs that retention deleted; done + expired only grows
//	floodproof_queue_up                                    gauge      0 while the queue does not answer; its other signals are then absent, not 0
//	floodproof_worker_jobs_total{worker,lane,outcome}      counter    outcome: done, retried, dead, lease_lost, unsettled
//	floodproof_worker_in_flight{worker,lane}               gauge      jobs in hand
//	floodproof_worker_retries_total{worker,lane,cause}     counter    cause: throttled, stopped; the other retried ones failed
//	floodproof_worker_panics_total{worker,lane}            counter
//	floodproof_worker_queue_failures_total{worker,lane,call} counter  call: receive, settle
//	floodproof_receiver_requests_total{provider,status}    counter
//	floodproof_receiver_refusals_total{provider,reason}    counter    reason: forged, malformed, too_large, type, method, unknown, not_now, internal, other
//	floodproof_receiver_ack_seconds{provider}              histogram  requests that were answered 2xx
//	floodproof_receiver_in_flight                          gauge
//
// # Labels are bounded
//
// Every label has a fixed set of values, made when the pipeline is: whatever a stranger writes into a path, or an older configuration left in the queue, is
// counted under "other". No label ever holds an event id, an address or a text that somebody sent.
package metrics
