/// A property that is null in JSON if it is nil, rather than left out.
@propertyWrapper
package struct OrNull<Value: Hashable & Sendable & Codable>: Hashable, Sendable, Codable {
  package var wrappedValue: Value?

  package init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    wrappedValue = container.decodeNil() ? nil : try container.decode(Value.self)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
  }
}

extension KeyedDecodingContainer {
  /// A key that is left out is nil, too.
  package func decode<Value>(_ type: OrNull<Value>.Type, forKey key: Key) throws -> OrNull<Value> {
    try decodeIfPresent(type, forKey: key) ?? OrNull(wrappedValue: nil)
  }
}

/// A fact that answers of older programs do not have: it is false there.
@propertyWrapper
package struct OrFalse: Hashable, Sendable, Codable {
  package var wrappedValue: Bool

  package init(wrappedValue: Bool) { self.wrappedValue = wrappedValue }

  package init(from decoder: any Decoder) throws {
    wrappedValue = try decoder.singleValueContainer().decode(Bool.self)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(wrappedValue)
  }
}

extension KeyedDecodingContainer {
  package func decode(_ type: OrFalse.Type, forKey key: Key) throws -> OrFalse {
    try decodeIfPresent(type, forKey: key) ?? OrFalse(wrappedValue: false)
  }
}
