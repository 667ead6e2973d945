import Foundation
import Glibc
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import SheafModel
import Synchronization
import Testing

@testable import SheafService

/// What clients send ahead waits where it costs them, and their requests have their turns.
struct TurnTests {
  private func withSocketPath(_ body: (String) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("sheaf-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body(folder.path + "/socket")
  }

  /// The numbers of tasks, in the order in which they had their turns.
  private final class Order: Sendable {
    let numbers = Mutex<[Int]>([])
  }

  @Test func turnsAreHandedOnInTheirOrder() async throws {
    let turns = Turns(1, waiting: 20)
    let order = Order()
    let tasks = try await turns.take {
      var tasks: [Task<Void, any Error>] = []
      for number in 0..<20 {
        tasks.append(Task { try await turns.take { order.numbers.withLock { $0.append(number) } } })
        while turns.waitingCount <= number, order.numbers.withLock({ $0.isEmpty }) { await Task.yield() }
      }
      #expect(order.numbers.withLock { $0.isEmpty })
      return tasks
    }
    for task in tasks { try await task.value }
    #expect(order.numbers.withLock { $0 } == Array(0..<20))
    // One that throws hands its turn on as well.
    struct Failure: Error {}
    for _ in 0..<2 {
      await #expect(throws: Failure.self) { try await turns.take { throw Failure() } }
    }
  }

  /// Requests whose clients have left wait, too, and take memory.
  @Test func noMoreWaitThanMay() async throws {
    let turns = Turns(1, waiting: 2)
    let refused = Order()
    let tasks = try await turns.take {
      var tasks: [Task<Void, any Error>] = []
      for number in 1...2 {
        tasks.append(Task { try await turns.take {} })
        while turns.waitingCount < number { await Task.yield() }
      }
      tasks.append(
        Task {
          do {
            try await turns.take {}
          } catch let error as SheafError where error.kind == .unavailable {
            refused.numbers.withLock { $0.append(3) }
          }
        })
      while turns.waitingCount == 2, refused.numbers.withLock({ $0.isEmpty }) { await Task.yield() }
      #expect(turns.waitingCount == 2)
      return tasks
    }
    for task in tasks { try await task.value }
    #expect(refused.numbers.withLock { $0 } == [3])
    try await turns.take {}
  }

  @Test func aServerAnswersAsManyRequestsAtOnceAsThereAreTurns() async throws {
    try await withSocketPath { path in
      let load = Mutex((now: 0, most: 0, all: 0))
      let router = Router()
      router.get("v1/load") { _, _ in
        load.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1), $0.all + 1) }
        // A request that takes a while.
        for _ in 0..<100 { await Task.yield() }
        load.withLock { $0.now -= 1 }
        return Response(status: .noContent)
      }
      let (running, run) = AsyncStream.makeStream(of: Void.self)
      let server = LibraryServer(
        responder: router.buildResponder(), builder: .http1(),
        configuration: ServerConfiguration(address: .unixDomainSocket(path: path)), clients: ClientCount(limit: 64),
        turns: Turns(2, waiting: 64), eventLoops: MultiThreadedEventLoopGroup.singleton,
        onServerRunning: { run.finish() }, logger: Logger(label: "test"))
      let services = ServiceGroup(configuration: .init(services: [server], logger: Logger(label: "test")))
      let task = Task { try await services.run() }
      for await _ in running {}
      let (clients, requests) = (10, 20)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<clients {
          group.addTask {
            let connection = try await RawConnection.open(path)
            let request = "GET /v1/load HTTP/1.1\r\nHost: sheaf\r\n\r\n"
            try await connection.send(String(repeating: request, count: requests - 1))
            try await connection.send(request.replacing("Host: sheaf", with: "Host: sheaf\r\nConnection: close"))
            while try await !connection.firstBytes().isEmpty {}
          }
        }
        try await group.waitForAll()
      }
      let (now, most, all) = load.withLock { $0 }
      #expect(now == 0 && most <= 2 && all == clients * requests, "\(now), \(most), \(all)")
      await services.triggerGracefulShutdown()
      try await task.value
    }
  }

  /// A request of a client that left while it waited for its turn is not answered, which would keep others waiting.
  @Test func whoLeftHasNoTurn() async throws {
    try await withSocketPath { path in
      let answered = Mutex(0)
      let (held, hold) = AsyncStream.makeStream(of: Void.self)
      let (begun, begin) = AsyncStream.makeStream(of: Void.self)
      let router = Router()
      router.get("v1/held") { _, _ in
        begin.finish()
        for await _ in held {}
        return Response(status: .noContent)
      }
      router.get("v1/load") { _, _ in
        answered.withLock { $0 += 1 }
        return Response(status: .noContent)
      }
      let (running, run) = AsyncStream.makeStream(of: Void.self)
      let (turns, clients) = (Turns(1, waiting: 64), ClientCount(limit: 64))
      let server = LibraryServer(
        responder: router.buildResponder(),
        builder: .http1(configuration: .init(additionalChannelHandlers: [clients.makeHandler()])),
        configuration: ServerConfiguration(address: .unixDomainSocket(path: path)), clients: clients,
        turns: turns, eventLoops: MultiThreadedEventLoopGroup.singleton,
        onServerRunning: { run.finish() }, logger: Logger(label: "test"))
      let services = ServiceGroup(configuration: .init(services: [server], logger: Logger(label: "test")))
      let task = Task { try await services.run() }
      for await _ in running {}
      func request(_ name: String, ends: Bool = false) -> String {
        "GET /v1/\(name) HTTP/1.1\r\nHost: sheaf\r\n" + (ends ? "Connection: close\r\n" : "") + "\r\n"
      }
      let first = try await RawConnection.open(path)
      try await first.send(request("held", ends: true))
      for await _ in begun {}
      do {
        var leaving: [RawConnection] = []
        for _ in 0..<20 {
          let connection = try await RawConnection.open(path)
          try await connection.send(String(repeating: request("load"), count: 5))
          leaving.append(connection)
        }
        while turns.waitingCount < 20 { await Task.yield() }
        _ = leaving
      }
      let last = try await RawConnection.open(path)
      try await last.send(request("load", ends: true))
      while turns.waitingCount < 21 { await Task.yield() }
      // The server has heard of all who left.
      while clients.connected > 2 { await Task.yield() }
      hold.finish()
      while try await !last.firstBytes().isEmpty {}
      while try await !first.firstBytes().isEmpty {}
      // Of some the server may not have heard yet.
      #expect((1...5).contains(answered.withLock { $0 }))
      await services.triggerGracefulShutdown()
      try await task.value
    }
  }

  /// Notes how much is read at once.
  private final class Reads: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer

    let lengths = Mutex<[Int]>([])
    /// How many reads there were in each turn of the event loop.
    let turns = Mutex<[Int]>([0])

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let length = unwrapInboundIn(data).readableBytes
      lengths.withLock { $0.append(length) }
      turns.withLock { $0[$0.count - 1] += 1 }
    }

    func channelReadComplete(context: ChannelHandlerContext) { turns.withLock { $0.append(0) } }
  }

  @Test func littleOfWhatAClientSendsIsReadAtOnce() async throws {
    try await withSocketPath { path in
      let reads = Reads()
      let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .childChannelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandlers([SmallReads(), reads])
          }
        }
        .bind(unixDomainSocketPath: path).get()
      let connection = try await RawConnection.open(path)
      let size = 1 << 20
      try await connection.send(String(repeating: "x", count: size))
      while reads.lengths.withLock({ $0.reduce(0, +) }) < size { await Task.yield() }
      #expect(reads.lengths.withLock { $0.max() } ?? 0 <= ServiceLimits.readBytes)
      #expect(reads.turns.withLock { $0.max() } ?? 0 <= 1)
      try await server.close()
    }
  }
}
