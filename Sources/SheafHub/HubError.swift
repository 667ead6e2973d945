package import SheafWire

/// A failure as the caller gets it: the kind, and a text that has no secret and no contents in it. A name is in it only
/// where the caller owns what it is the name of.
package struct HubError: Error, Hashable, Sendable {
  package let kind: Problem.Kind
  package let detail: String

  package init(_ kind: Problem.Kind, _ detail: String) {
    self.kind = kind
    self.detail = detail
  }

  package var problem: Problem { Problem(kind, detail: detail) }
}
