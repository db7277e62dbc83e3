package trace

import "github.com/leakgate/leakgate/internal/analysis/heap"

// Collection describes how the instances of some classes hold their elements,
// so that a path goes from the collection to an element and not through its
// tables and nodes. Fields are named by the class that declares them; if a dump
// does not have them, another implementation may match.
type Collection struct {
	// Classes are the exact names of the collection's classes: a subclass may
	// hold more.
	Classes []string
	Shape   Shape
	// Through is a field that leads to the collection that actually holds the
	// elements.
	Through Member
	// Head is the field that leads to the table, the array or the first node.
	Head Member
	// Size is the field of an Array with the number of elements that count; the
	// rest are leftovers.
	Size Member
	// Nodes are the possible classes of nodes.
	Nodes []Node
	// Name is the name of elements without an index: "key()", "element()".
	Name string
	// If Header, the first node belongs to the chain itself.
	Header bool
	// KeysOnly omits the values of a map.
	KeysOnly bool
	// Matcher is that of First.
	Matcher *Matcher
	// Only, if set, selects the elements that count.
	Only func(heap.Object) bool
}

// Shape is the structure of a collection.
type Shape uint8

const (
	// Array has elements in an array.
	Array Shape = iota
	// Chain has nodes that are linked, with one item each.
	Chain
	// Table has an array of chains of nodes with keys and values.
	Table
	// Pairs has one chain of nodes with keys and values.
	Pairs
	// Referent is a Reference that holds its referent nevertheless, such as an
	// animator's target. It is followed last.
	Referent
	// First is a field that is followed before all others, as a known leak by
	// Matcher.
	First
	// FirstChain is a Chain that begins at the object itself, if a First leads
	// to it.
	FirstChain
)

// Member is a field of a class.
type Member struct{ Class, Name string }

// Node is a class of nodes, with the fields that it declares. The item of a
// chain is its Value, "" for the node itself.
type Node struct {
	Class, Next, Key, Value string
	// KeyClass declares Key if it is not Class; such a key is a referent, and a
	// node whose key was cleared is stale.
	KeyClass string
	// First leads from a node that stands for many, such as the bins of a tree,
	// to the first of them.
	First string
}

// collections are those of java.util, of OpenJDK and of Apache Harmony, which
// Android had before 7.0 (Shark: OpenJdkInstanceRefReaders.kt,
// ApacheHarmonyInstanceRefReaders.kt).
var collections = []Collection{
	{Classes: []string{"java.util.LinkedList"}, Shape: Chain, Head: Member{"java.util.LinkedList", "first"},
		Nodes: []Node{{Class: "java.util.LinkedList$Node", Next: "next", Value: "item"}}},
	{Classes: []string{"java.util.LinkedList"}, Shape: Chain, Head: Member{"java.util.LinkedList", "voidLink"},
		Header: true,
		Nodes:  []Node{{Class: "java.util.LinkedList$Link", Next: "next", Value: "data"}}},
	{Classes: []string{"java.util.ArrayList"}, Shape: Array, Head: Member{"java.util.ArrayList", "elementData"},
		Size: Member{"java.util.ArrayList", "size"}},
	{Classes: []string{"java.util.ArrayList"}, Shape: Array, Head: Member{"java.util.ArrayList", "array"},
		Size: Member{"java.util.ArrayList", "size"}},
	{Classes: []string{"java.util.concurrent.CopyOnWriteArrayList"}, Shape: Array,
		Head: Member{"java.util.concurrent.CopyOnWriteArrayList", "array"}},
	{Classes: []string{"java.util.concurrent.CopyOnWriteArrayList"}, Shape: Array,
		Head: Member{"java.util.concurrent.CopyOnWriteArrayList", "elements"}},
	{Classes: []string{"java.util.HashMap", "java.util.LinkedHashMap"}, Shape: Table,
		Head: Member{"java.util.HashMap", "table"}, Nodes: hashNodes, Name: "key()"},
	{Classes: []string{"java.util.concurrent.ConcurrentHashMap"}, Shape: Table,
		Head: Member{"java.util.concurrent.ConcurrentHashMap", "table"}, Name: "key()",
		Nodes: []Node{
			{Class: "java.util.concurrent.ConcurrentHashMap$TreeBin", First: "first"},
			{Class: "java.util.concurrent.ConcurrentHashMap$Node", Next: "next", Key: "key", Value: "val"},
		}},
	{Classes: []string{"java.util.WeakHashMap"}, Shape: Table, Head: Member{"java.util.WeakHashMap", "table"},
		Nodes: weakNodes},
	{Classes: []string{"java.util.WeakHashMap"}, Shape: Table, Head: Member{"java.util.WeakHashMap", "elementData"},
		Nodes: weakNodes},
	{Classes: []string{"java.util.HashSet", "java.util.LinkedHashSet"}, Shape: Table,
		Through: Member{"java.util.HashSet", "map"},
		Head:    Member{"java.util.HashMap", "table"}, Nodes: hashNodes, Name: "element()", KeysOnly: true},
	{Classes: []string{"java.util.HashSet", "java.util.LinkedHashSet"}, Shape: Table,
		Through: Member{"java.util.HashSet", "backingMap"},
		Head:    Member{"java.util.HashMap", "table"}, Nodes: hashNodes, Name: "element()", KeysOnly: true},
}

// hashNodes are those of all implementations; trees of nodes maintain the chain
// as well.
var hashNodes = []Node{
	{Class: "java.util.HashMap$Node", Next: "next", Key: "key", Value: "value"},
	{Class: "java.util.HashMap$Entry", Next: "next", Key: "key", Value: "value"},
	{Class: "java.util.HashMap$HashMapEntry", Next: "next", Key: "key", Value: "value"},
}

var weakNodes = []Node{
	{Class: "java.util.WeakHashMap$Entry", Next: "next", Key: "referent", KeyClass: "java.lang.ref.Reference",
		Value: "value"},
}
