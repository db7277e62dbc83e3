// Package text formats what people read: untrusted strings made safe for a
// terminal and for messages, shell words, byte sizes, numbers and durations. It
// imports no other package of leakgate, which allows every package to use it.
package text
