// Package state is what a queue remembers, as a machine without a clock, a lock, a file or a goroutine: a [Store] is changed by one [Command] after the other, each at
// an instant that its caller says, and the same commands at the same instants make the same store, everywhere. A broker gives it its clock, a log its positions.
//
// Commands and results have a binary form, so that they can travel or be kept. Fields are never reordered; what is written stays readable.
package state
