// Package alert tells people of dead letters: by an incoming webhook of Slack, or of what understands the same (Mattermost, Rocket.Chat, Discord under /slack), by a webhook that gets JSON,
// and through Sentry (package sentry).
//
// # It never holds up the work
//
// [Alerter.Dead] puts a letter into a bounded queue and returns; what does not fit is counted and left out. Each receiver of alerts has a queue and a goroutine of its own, time-outs, and
// a bounded number of attempts, so that one that hangs keeps neither the worker nor the others.
//
// # It does not flood anybody either
//
// Letters are told apart by lane and reason. Of each such group five are told at once and then one a minute, by default; over all groups four times as many at once, and five times as many a
// minute. What comes meanwhile is counted, and told as a sum as soon as there is room: "12 more in the last minute".
//
// # What it says
//
// Which event, of which type and lane, why, after how many attempts, and when. Never the payload. A reason may quote what a downstream said, and that may repeat what it was sent: what
// stands in quotes is left out ([Redact]). Event ids and types are texts of strangers, and are sent so that they cannot be read as formatting or as a mention of somebody.
//
// An alert is a convenience: it can be lost with the process, or by its receiver. The letters themselves are in the queue, and their number is among the metrics.
package alert
