import SheafHubStore

/// The engines that every suite of the hub runs on.
package enum StoreEngine: String, CaseIterable, Sendable {
  case sqlite
  case postgres
}
