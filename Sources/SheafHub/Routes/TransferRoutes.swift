import HTTPTypes
import Hummingbird
import SheafWire

extension HubRoutes {
  /// For how long a request goes on with an acceptance before it answers that there is more to do.
  private static let acceptance = Duration.seconds(5)

  /// Items that go from one account of the hub to another.
  func addTransferRoutes(to routes: some RouterMethods<HubContext>) {
    let transfers = hub.transfers
    add(
      "v1/items/:item/transfer", to: routes,
      [
        .put: { request, context in
          let caller = try context.requireCaller()
          let item = try id("item", context)
          let settings = try await request.json(TransferSettings.self, upTo: Self.smallBody)
          let facts = try await transfers.offer(item, to: settings.handle, by: caller.person)
          await news.check()
          return try .json(facts)
        },
        .delete: { _, context in
          let caller = try context.requireCaller()
          try await transfers.withdraw(try id("item", context), by: caller.person)
          await news.check()
          return Response(status: .noContent)
        },
      ])
    add(
      "v1/transfers", to: routes,
      [
        .get: { _, context in
          try .json(try await transfers.lists(for: try context.requireCaller().person))
        }
      ])
    add(
      "v1/transfers/:transfer", to: routes,
      [
        .delete: { _, context in
          let caller = try context.requireCaller()
          try await transfers.decline(try id("transfer", context), by: caller.person)
          await news.check()
          return Response(status: .noContent)
        }
      ])
    add(
      "v1/transfers/:transfer/acceptance", to: routes,
      [
        .post: { _, context in
          let caller = try context.requireCaller()
          let progress = try await transfers.accept(
            try id("transfer", context), by: caller.person, until: .now + Self.acceptance)
          if progress.isDone { await news.check() }
          return try .json(progress)
        }
      ])
  }
}
