import Dispatch
import Fuse
import Glibc
import Synchronization

/// A file system in memory that implements every operation, with answers that the kernel may keep for ever.
final class MemoryFileSystem: FileSystem {
  struct Node {
    var attributes: FileAttributes
    /// Blocks of 4096 bytes by their index; those missing are holes.
    var blocks: [Int64: [UInt8]] = [:]
    var target: [UInt8] = []
    /// A directory's entries and their cookies, in the order of creation.
    var children: [(name: FileName, node: NodeID, cookie: UInt64)] = []
    var positions: [FileName: Int] = [:]
    var attributesExtended: [FileName: [UInt8]] = [:]
    var lookups: UInt64 = 0
  }

  struct State {
    var nodes: [NodeID: Node] = [:]
    var lastNode: UInt64 = 1
    var lastHandle: UInt64 = 0
    /// Far from 0, so that cookies of 64 bits prove themselves.
    var lastCookie: UInt64 = 1 << 40
    /// How often each operation was called.
    var calls: [String: Int] = [:]
    var largestRead = 0
    var largestWrite = 0
    var openHandles: Set<FileHandle> = []
    var wasDestroyed = false
    /// What the kernel offered.
    var capabilities: Capabilities = []
  }

  let options: ConnectionOptions
  /// How many entries a listing gives at a time at most.
  let entriesPerReply: Int
  /// Whether files are read and written past the page cache.
  let isDirect: Bool
  let state = Mutex(State())
  /// Signalled with every forget.
  let wasForgotten = DispatchSemaphore(value: 0)

  init(options: ConnectionOptions = ConnectionOptions(), entriesPerReply: Int = .max, isDirect: Bool = false) {
    self.options = options
    self.isDirect = isDirect
    self.entriesPerReply = entriesPerReply
    state.withLock {
      $0.nodes[.root] = Node(attributes: FileAttributes(node: .root, mode: S_IFDIR | 0o755, linkCount: 2))
    }
  }

  func initialize(_ connection: ConnectionInfo) -> ConnectionOptions {
    count("initialize")
    state.withLock { $0.capabilities = connection.capabilities }
    return options
  }

  func destroy() {
    state.withLock { $0.wasDestroyed = true }
  }

  func count(_ operation: String) {
    state.withLock { $0.calls[operation, default: 0] += 1 }
  }

  func calls(_ operation: String) -> Int {
    state.withLock { $0.calls[operation, default: 0] }
  }

  /// Changes the state and counts the call.
  func perform<Result: Sendable>(
    _ operation: String, _ body: (inout State) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    count(operation)
    return try state.withLock { (state) throws(Errno) in try body(&state) }
  }
}

extension MemoryFileSystem.State {
  func node(_ id: NodeID) throws(Errno) -> MemoryFileSystem.Node {
    guard let node = nodes[id] else { throw .staleFileHandle }
    return node
  }

  func child(_ name: FileName, in parent: NodeID) throws(Errno) -> NodeID {
    if name.isDot { return parent }
    let directory = try node(parent)
    guard let position = directory.positions[name] else { throw .noSuchFileOrDirectory }
    return directory.children[position].node
  }

  mutating func entry(_ id: NodeID) throws(Errno) -> Entry {
    let node = try node(id)
    nodes[id]?.lookups += 1
    return Entry(
      node: id, generation: 1, attributes: node.attributes, entryTimeout: Entry.forever,
      attributeTimeout: Entry.forever)
  }

  mutating func make(
    _ name: FileName, in parent: NodeID, mode: UInt32, device: UInt64 = 0, caller: RequestContext
  ) throws(Errno) -> NodeID {
    guard try node(parent).positions[name] == nil else { throw .fileExists }
    lastNode += 1
    let id = NodeID(rawValue: lastNode)
    let now = currentTime()
    nodes[id] = MemoryFileSystem.Node(
      attributes: FileAttributes(
        node: id, mode: mode, linkCount: mode & S_IFMT == S_IFDIR ? 2 : 1, uid: caller.uid, gid: caller.gid,
        device: device, accessTime: now, modificationTime: now, changeTime: now))
    add(name, id, to: parent)
    return id
  }

  mutating func add(_ name: FileName, _ id: NodeID, to parent: NodeID) {
    lastCookie += 1
    let position = nodes[parent]?.children.count
    nodes[parent]?.positions[name] = position
    nodes[parent]?.children.append((name, id, lastCookie))
  }

  mutating func remove(_ name: FileName, from parent: NodeID) {
    guard let position = nodes[parent]?.positions.removeValue(forKey: name) else { return }
    nodes[parent]?.children.remove(at: position)
    for (name, other) in nodes[parent]?.positions ?? [:] where other > position {
      nodes[parent]?.positions[name] = other - 1
    }
  }

  mutating func newHandle() -> FileHandle {
    lastHandle += 1
    let handle = FileHandle(rawValue: lastHandle)
    openHandles.insert(handle)
    return handle
  }
}

func currentTime() -> TimeSpec {
  var now = timespec()
  clock_gettime(CLOCK_REALTIME, &now)
  return TimeSpec(seconds: Int64(now.tv_sec), nanoseconds: Int64(now.tv_nsec))
}
