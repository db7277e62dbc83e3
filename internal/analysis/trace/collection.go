package trace

import "github.com/leakgate/leakgate/internal/analysis/heap"

// Collection describes how the instances of some classes hold their elements,
// so a path can lead from the collection directly to an element instead of
// through tables and nodes. Each field is given together with the class that
// declares it. If a dump does not have these fields, the entry for another
// implementation may match.
type Collection struct {
	// Classes are the exact names of the collection's classes; subclasses may
	// hold additional objects.
	Classes []string
	Shape   Shape
	// Through is a field that leads to the collection that actually holds the
	// elements.
	Through Member
	// Head is the field that leads to the table, the array or the first node.
	Head Member
	// Size is, for an Array, the field with the number of valid elements; the
	// other elements are leftovers.
	Size Member
	// Nodes lists the possible classes of nodes.
	Nodes []Node
	// Name is the name of elements that have no index, such as "key()" or
	// "element()".
	Name string
	// If Header is true, the first node is a header without an item.
	Header bool
	// KeysOnly omits the values of a map.
	KeysOnly bool
	// Matcher is the matcher that is assigned to the reference of a First.
	Matcher *Matcher
	// Only, if set, selects the elements that are visited.
	Only func(heap.Object) bool
}

// Shape is the structure of a collection.
type Shape uint8

const (
	// Array means that the elements are in an array.
	Array Shape = iota
	// Chain means that the elements are in linked nodes, one element per node.
	Chain
	// Table is an array of chains of nodes with keys and values.
	Table
	// Pairs is a single chain of nodes with keys and values.
	Pairs
	// Referent is a Reference whose referent is followed although it is weak,
	// such as an animator's target. The referent is followed last.
	Referent
	// First is a field that is followed before all others; Matcher marks its
	// reference as a known leak.
	First
	// FirstChain is a Chain that begins at the object itself. It is used if a
	// First leads to this object.
	FirstChain
)

// Member is a field of a class.
type Member struct{ Class, Name string }

// Node is a class of nodes, with the fields that it declares. The item of a
// chain is its Value; if Value is "", the node itself is the item.
type Node struct {
	Class, Next, Key, Value string
	// KeyClass is the class that declares Key if that class is not Class. In
	// that case the key is a referent, and a node with a cleared key is stale.
	KeyClass string
	// First is the field of a node that represents several nodes, such as the
	// bin of a tree; it leads to the first of these nodes.
	First string
}

// collections are those of java.util, as implemented by OpenJDK and by Apache
// Harmony, which Android used before 7.0 (Shark: OpenJdkInstanceRefReaders.kt,
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

// hashNodes lists the node classes of all implementations. Nodes that form
// trees are also linked as a chain.
var hashNodes = []Node{
	{Class: "java.util.HashMap$Node", Next: "next", Key: "key", Value: "value"},
	{Class: "java.util.HashMap$Entry", Next: "next", Key: "key", Value: "value"},
	{Class: "java.util.HashMap$HashMapEntry", Next: "next", Key: "key", Value: "value"},
}

var weakNodes = []Node{
	{Class: "java.util.WeakHashMap$Entry", Next: "next", Key: "referent", KeyClass: "java.lang.ref.Reference",
		Value: "value"},
}
