// Package state is what a queue remembers, as a machine without a clock, a lock, a file or a goroutine: a [Store] is changed by one [Command] after the other, each at
// an instant that its caller says, and the same commands at the same instants make the same store, everywhere. A broker gives it its clock, a log its positions.
//
// What is finished is packed into one piece of bytes, or only known any more (Store.Keep), until a command says that it is to be forgotten (Retain): forgetting is a change like all
// others, and takes place at the same instant in every store. Nothing ever goes by itself.
//
// Commands and results have a binary form, so that they can travel or be kept. Fields are never reordered; what is written stays readable.
package state
