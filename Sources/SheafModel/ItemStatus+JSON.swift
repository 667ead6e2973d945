extension ItemStatus {
  private enum Keys: String, CodingKey { case id, path, kind, version, owner, state, share }

  /// Encodes what is absent as null.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Keys.self)
    try container.encode(id, forKey: .id)
    try container.encode(path, forKey: .path)
    try container.encode(kind, forKey: .kind)
    try container.encode(version, forKey: .version)
    try container.encode(owner, forKey: .owner)
    try container.encode(state, forKey: .state)
    try container.encode(share, forKey: .share)
  }
}
