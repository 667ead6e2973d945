/// The types of events (docs/REFERENCE.md, "Events").
package enum EventType: String, Sendable, Codable, CaseIterable {
  case edit = "sheaf.change.edit"
  case comment = "sheaf.change.comment"
  case memberAdded = "sheaf.membership.added"
  case memberRemoved = "sheaf.membership.removed"
  case accessRequested = "sheaf.membership.requested"
  case accessDeclined = "sheaf.membership.declined"
  case mention = "sheaf.mention"
  case created = "sheaf.persistence.created"
  case deleted = "sheaf.persistence.deleted"
  case renamed = "sheaf.persistence.renamed"
  case moved = "sheaf.persistence.moved"
  case shareCreated = "sheaf.share.created"
  case shareUpdated = "sheaf.share.updated"
  case shareStopped = "sheaf.share.stopped"
}
