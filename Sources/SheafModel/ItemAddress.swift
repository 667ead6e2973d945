/// The item that a request to the API is about: the query parameters `as` and `path`.
///
/// A path's bytes are percent-encoded, since names need not be UTF-8. Both parameters may be absent: without `as` the
/// library's default account acts, and without `path` the request is about all its documents.
package struct ItemAddress: Hashable, Sendable {
  package var account: AccountHandle?
  /// Bytes of `Documents/…` or `Shared/…`.
  package var path: [UInt8]?

  /// Bytes of a path that a request takes at most.
  package static let pathLength = 4096

  package init(account: AccountHandle?, path: [UInt8]?) {
    self.account = account
    self.path = path
  }

  /// The item's id if the path is `id:UUID`, which names the item at any place and under any name; nil for a path.
  package var itemID: String? { path.flatMap(Self.itemID) }

  /// The UUID that `id:UUID` names; nil for anything else.
  package static func itemID(_ path: [UInt8]) -> String? {
    let prefix = Array("id:".utf8)
    let id = path.dropFirst(prefix.count)
    guard path.starts(with: prefix), id.count == uuidLength, id.allSatisfy(uuidBytes.contains) else { return nil }
    return String(decoding: id, as: UTF8.self).lowercased()
  }

  /// The item's id and what follows it, if the path is `id:UUID` or, for what is in a folder, `id:UUID/…`; nil for any
  /// other path.
  package var itemPlace: (id: String, below: [UInt8])? {
    guard let path else { return nil }
    let end = path.firstIndex(of: UInt8(ascii: "/")) ?? path.endIndex
    return Self.itemID(Array(path[..<end])).map { ($0, Array(path[end...])) }
  }

  private static let uuidLength = 36
  private static let uuidBytes = Set("0123456789abcdefABCDEF-".utf8)

  /// Reads the parameters of a URL's query, without its `?`, and ignores others.
  ///
  /// - Throws: ``SheafError`` of kind `invalid` for a wrong handle or percent-encoding; `nameTooLong` for a path that no
  ///   program could give to the kernel, either (PATH_MAX).
  package init(query: String) throws(SheafError) {
    let parameters = try QueryParameters(query)
    if let handle = parameters["as"] {
      account = try AccountHandle(String(decoding: handle, as: UTF8.self))
    }
    path = parameters["path"]
    guard path?.count ?? 0 <= Self.pathLength else {
      throw SheafError(
        .nameTooLong, subject: "a path of \(path?.count ?? 0) bytes",
        reason: "is longer than \(Self.pathLength)", advice: "name the item by its id: id:UUID")
    }
  }

  /// The query's parameters, `as=…&path=…`, or an empty text.
  package var query: String {
    var parts: [String] = []
    if let account { parts.append("as=" + PercentCoding.encode(account.description.utf8)) }
    if let path { parts.append("path=" + PercentCoding.encode(path)) }
    return parts.joined(separator: "&")
  }
}

/// A URL's query, with the values' bytes.
package struct QueryParameters: Sendable {
  private let values: [String: [UInt8]]

  /// - Throws: ``SheafError`` of kind `invalid` for a bad percent-encoding or a parameter given twice.
  package init(_ query: String) throws(SheafError) {
    var values: [String: [UInt8]] = [:]
    for part in query.utf8.split(separator: UInt8(ascii: "&")) {
      let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      let name = String(decoding: pair[0], as: UTF8.self)
      guard let value = pair.count == 2 ? PercentCoding.decode(pair[1]) : [] else {
        throw SheafError(.invalid, subject: name.printable, reason: "has a % without two hexadecimal digits")
      }
      guard values.updateValue(value, forKey: name) == nil else {
        throw SheafError(.invalid, subject: name.printable, reason: "is given twice")
      }
    }
    self.values = values
  }

  package subscript(name: String) -> [UInt8]? { values[name] }
}

/// Percent-encoding of RFC 3986, from bytes to bytes.
package enum PercentCoding {
  private static let digits = Array("0123456789ABCDEF".utf8)

  /// Encodes everything but unreserved characters and `/`.
  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var result: [UInt8] = []
    for byte in bytes {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"), UInt8(ascii: "/"):
        result.append(byte)
      default:
        result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0xF)]]
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// Decodes; nil if no two hexadecimal digits follow a `%`. A `+` is a plus.
  package static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
    var result: [UInt8] = []
    var iterator = text.makeIterator()
    while let byte = iterator.next() {
      guard byte == UInt8(ascii: "%") else {
        result.append(byte)
        continue
      }
      guard let high = iterator.next().flatMap(value), let low = iterator.next().flatMap(value) else { return nil }
      result.append(high << 4 | low)
    }
    return result
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
