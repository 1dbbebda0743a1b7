// Package sqs is a queue on Amazon SQS: the service carries, and a queue in SQLite stores (package inbox, which says why nothing is lost by that).
//
// # Why SQS is not the queue
//
// It keeps a message for 14 days at most and then forgets it, silently. It knows an event again for five minutes, in FIFO queues alone, while providers send again for days. A
// delay ends after 15 minutes, a lease after 12 hours, and what was received too often goes to another queue which forgets too. What SQS does is to take a message, keep it in three data
// centres, and give it to somebody until it is deleted. So it is the transport: messages are in it for the moment in which nobody has moved them yet.
//
// # Messages
//
// All that waits while a request is under way shares the next (package bundle): one message of SQS holds as much as fits, up to ten go in one request, and the limit of both is 1 MiB
// since August 2025 (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html, read November 2026). A body of SQS is text, so the bytes are an attribute of the type
// Binary, whose value counts as it is; base64 in the body would take a third more. A payload near the limit that does not compress is refused with queue.ErrTooLarge.
//
// A request may fail in part. What failed by no fault of ours is tried again, a few times; then Publish fails as a whole, and what did get in is known again.
//
// # FIFO
//
// A FIFO queue knows a message again for five minutes, by a hash of its content, and gives messages of a group in their order, to one receiver at a time. Neither is needed here: the
// store knows events for ever and says which is next. It exists to compare, and for whoever wants events in the store in the order of their acknowledgement. The group cannot be the
// resource: a message holds events of many. All are one group, or are spread over some by the hash, which gives up the order for more receivers.
//
// # Durability
//
// Of Amazon's own service, which is known by its name, the loss of a machine is claimed: "Amazon SQS stores all message queues and messages within a single, highly-available AWS
// region with multiple redundant Availability Zones" (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-basic-architecture.html, read November 2026). The
// store on the worker's disk survives a loss of power, and a job that is in the store alone survives no more: the weaker is claimed for the queue. Of the emulator in package child
// is claimed what it says of itself, and of any other server nothing. Figures that are measured with the emulator say nothing about Amazon.
//
// Open refuses a queue that would lose events: with a RedrivePolicy, which takes messages away after some receives, and with a retention of less than 14 days.
//
// # Notes
//
// Note: a message that was fetched and not deleted, because its process died, comes again when its visibility timeout ends: DefaultVisibility later.
//
// Note: events over 1 MiB would need a second store (S3, as in Amazon's extended clients), with its own failures between two writes.
//
// Note: the number of waiting messages is Amazon's approximation: Depth may be wrong for a minute after the last change.
package sqs
