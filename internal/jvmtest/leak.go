package jvmtest

// Leak is a leak that must be found in a program. The names of classes and
// fields are those in the source code.
type Leak struct {
	// Name is the argument of ShopMain that selects the leak, or "" in Mall.
	Name string
	// Class is the class of the leaked objects. Each leak of a program has a
	// different class.
	Class string
	// Owner and Field identify the faulty reference: clearing it, in the class
	// or in all objects of Owner, fixes the leak. In Mall, the reference may
	// belong to a running thread, whose stack holds another reference to the
	// object.
	Owner, Field string
	// The number of objects of Class that each iteration adds; 0 if an
	// iteration replaces the only object.
	Each int
}

// Objects returns the number of objects after n iterations; n must be at least
// 1.
func (l Leak) Objects(iterations int) int {
	if l.Each == 0 {
		return 1
	}
	return l.Each * iterations
}

const (
	shop = "com.example.shop."
	mall = "com.example.mall."
)

// ShopLeaks returns the leaks in Shop. ShopMain takes their names as arguments.
func ShopLeaks() []Leak {
	return []Leak{
		{"image-cache", shop + "Image", shop + "ImageCache", "entries", 3},
		{"event-bus-lambda", shop + "CartScreen", shop + "EventBus", "listeners", 1},
		{"event-bus-anonymous", shop + "OrderScreen", shop + "EventBus", "listeners", 2},
		{"thread-local", shop + "DraftScreen", shop + "DraftBook", "pages", 1},
		{"unbounded-lru", shop + "ProductScreen", shop + "ProductCatalog", "recent", 2},
		{"running-thread", shop + "UploadScreen", shop + "UploadScreen$Upload", "this$0", 1},
		{"running-task", shop + "SyncScreen", shop + "SyncScreen$Sync", "this$0", 1},
	}
}

// MallLeaks returns the leaks in Mall.
func MallLeaks() []Leak {
	return []Leak{
		{"", mall + "ProductScreen", mall + "LastViewed", "product", 0},
		{"", mall + "PhotoScreen", mall + "ImageCache", "entries", 1},
		{"", mall + "SessionScreen", mall + "Sessions", "open", 1},
		{"", mall + "CartScreen", mall + "EventBus", "listeners", 1},
		{"", mall + "PriceScreen", mall + "PriceFeed", "watchers", 1},
		{"", mall + "SearchScreen", mall + "SearchIndex", "callbacks", 1},
		{"", mall + "CheckoutScreen", mall + "Clock", "tickers", 1},
		{"", mall + "DraftScreen", mall + "DraftBook", "pages", 1},
		{"", mall + "UploadScreen", mall + "UploadScreen$Upload", "this$0", 1},
		{"", mall + "SyncScreen", "java.lang.Thread", "target", 1},
		{"", mall + "ThumbnailScreen", mall + "Thumbnails", "recent", 1},
		{"", mall + "EditorScreen", mall + "History", "undo", 1},
		{"", mall + "PaymentScreen", mall + "Reports", "pending", 1},
		{"", mall + "HelpScreen", mall + "Journal", "last", 1},
		{"", mall + "SettingsScreen", mall + "Settings", "watchers", 1},
		{"", mall + "ProfileScreen", mall + "Shelf", "slots", 1},
		{"", mall + "CatalogScreen", mall + "Catalog", "byName", 1},
		{"", mall + "WishScreen", mall + "Wishes", "byOwner", 1},
		{"", mall + "DealScreen", mall + "Deals", "offers", 1},
	}
}
