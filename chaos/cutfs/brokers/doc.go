// Package brokers holds tests alone: brokers run on a file system whose power is cut, and what they had acknowledged must be there afterwards, or, with settings that do not
// promise it, must not. The second half is as important: a cut that takes nothing away proves nothing.
package brokers
