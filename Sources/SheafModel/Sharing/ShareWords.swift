/// The role of a participant in a share.
package enum Role: String, Sendable, Codable, CaseIterable {
  /// Owns the item.
  case owner
  /// Adds and removes people, and changes their permissions.
  case administrator
  /// Was invited.
  case privateUser
  /// Joined through the public permission.
  case publicUser
}

/// The permission of a participant for the shared items.
package enum SharePermission: String, Sendable, Codable, CaseIterable {
  case readOnly, readWrite
}

/// The standing of a participant between invitation and departure.
package enum Acceptance: String, Sendable, Codable, CaseIterable {
  case pending, accepted, removed
}

/// The permission of anyone who has the share URL.
package enum PublicPermission: String, Sendable, Codable, CaseIterable {
  case none, readOnly, readWrite

  /// The permission of a person who joins through it; nil if nobody can.
  package var permission: SharePermission? {
    switch self {
    case .none: nil
    case .readOnly: .readOnly
    case .readWrite: .readWrite
    }
  }
}

/// The permissions of a share in one phrase that a person understands.
package enum ShareSummary {
  /// What follows where strangers might join, and the time for that is over.
  package static let linkHasEnded = "; the link has ended"

  /// - Parameters:
  ///   - anyone: The public permission.
  ///   - invited: The permissions of those who were invited and are pending or accepted, the owner not among them.
  ///   - otherwise: The permission of later invitations, for a share in which nobody is invited yet.
  package static func text(
    anyone: PublicPermission, invited: [SharePermission], otherwise: SharePermission
  ) -> String {
    let editors = (invited.isEmpty ? [otherwise] : invited).filter { $0 == .readWrite }
    let isMixed = !editors.isEmpty && editors.count < invited.count
    switch anyone {
    case .readWrite: return "Everyone with the link can edit"
    case .readOnly where invited.isEmpty || editors.isEmpty: return "Everyone with the link can view"
    case .readOnly:
      return "Everyone with the link can view; \(isMixed ? "some invited people" : "invited people") can edit"
    case .none where editors.isEmpty: return "Only invited people can view"
    case .none where isMixed: return "Only invited people can view; some of them can edit"
    case .none: return "Only invited people can edit"
    }
  }
}
