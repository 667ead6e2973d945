import SheafModel
package import SheafWire

/// An answer of many rows; all others have a few facts.
protocol LongAnswer {}

extension FeedPage: LongAnswer {}
extension SharedFeedPage: LongAnswer {}
extension SharedFolderPage: LongAnswer {}
extension LogPage: LongAnswer {}
extension VersionList: LongAnswer {}
extension ContentCopies: LongAnswer {}
extension SendAnswer: LongAnswer {}
extension InboxPage: LongAnswer {}
extension ShareRequests: LongAnswer {}
extension DeviceList: LongAnswer {}
extension RetentionList: LongAnswer {}

extension ItemState {
  /// Whether it is what a hub can know of an item. Whoever notes it need not read its handles before it is shown.
  package var isSound: Bool {
    HubNumbers.range.contains(number) && [purges, labels].allSatisfy { $0.map(HubNumbers.range.contains) ?? true }
      && madeBy.isHandle && placedBy.isHandle && version?.isSound != false
  }
}

/// The numbers that hubs give: what is done with them cannot overflow.
enum HubNumbers {
  /// What JSON has exactly, too (RFC 8259, 6).
  static let range: ClosedRange<Int64> = 0...1 << 53
}

extension ItemVersion {
  /// Whether it is what a hub can know of a version.
  package var isSound: Bool {
    HubNumbers.range.contains(number) && (0...WireLimits.documentBytes).contains(size) && author.isHandle
  }
}

extension String? {
  /// Whether it is the handle of an account; nobody is the owner.
  fileprivate var isHandle: Bool { map { (try? AccountHandle($0)) != nil } ?? true }
}

extension LogPage<Event> {
  /// Whether it is a page of a log: numbers that rise, and ids that are ids, since they become headers and environments
  /// of other programs.
  package func isSound(after number: Int64, limit: Int) -> Bool {
    func isID(_ text: String) -> Bool { WireID(text)?.description == text }
    guard events.count <= limit, HubNumbers.range.contains(next), HubNumbers.range.contains(last),
      next >= number || events.isEmpty
    else { return false }
    var number = number
    for event in events {
      guard event.sequence > number, isID(event.id), isID(event.subject), event.source.hasPrefix("sheaf://"),
        isID(String(event.source.dropFirst("sheaf://".count)))
      else { return false }
      number = event.sequence
    }
    return events.isEmpty || next >= number
  }
}

extension ContentCopies {
  /// Whether the parts lie in a version of so many bytes, one after the other, and in another one.
  package func isSound(size: Int64, from base: Int64) -> Bool {
    var end: Int64 = 0
    for copy in copies {
      guard copy.offset >= end, copy.offset <= size, copy.length >= 1, copy.length <= size - copy.offset else {
        return false
      }
      end = copy.offset + copy.length
      guard let source = copy.source else { continue }
      guard source >= 0, source <= base, copy.length <= base - source else { return false }
    }
    return true
  }
}
