// Package text formats what people read: untrusted text made safe for a
// terminal and for messages, shell words, byte sizes, numbers and durations. It
// imports no other package of leakgate, so that every package may use it.
package text
