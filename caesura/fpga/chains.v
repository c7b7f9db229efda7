// Maps what synthesis would else spread over many look-up tables to the carry chains of an ECP5, for Yosys' techmap.

// Y = (A & B) + (C & D), or with SUBTRACT (C & D) - (A & B). A bit of it is one look-up table: what generates a carry
// is its function of A and B where C and D are 0.
module \$__and_add (A, B, C, D, Y);
	parameter WIDTH = 1;
	parameter SUBTRACT = 0;
	input [WIDTH-1:0] A, B, C, D;
	output [WIDTH-1:0] Y;

	localparam EVEN = WIDTH + WIDTH % 2;
	localparam [15:0] INIT = SUBTRACT ? 16'h8777 : 16'h7888;
	wire [EVEN-1:0] a = A, b = B, c = C, d = D, y;
	wire [EVEN/2:0] carry;
	assign carry[0] = SUBTRACT;
	assign Y = y;
	genvar i;
	generate for (i = 0; i < EVEN; i = i + 2) begin:slice
		CCU2C #(.INIT0(INIT), .INIT1(INIT), .INJECT1_0("NO"), .INJECT1_1("NO")) cell_i (
			.CIN(carry[i/2]), .COUT(carry[i/2+1]),
			.A0(a[i]), .B0(b[i]), .C0(c[i]), .D0(d[i]), .S0(y[i]),
			.A1(a[i+1]), .B1(b[i+1]), .C1(c[i+1]), .D1(d[i+1]), .S1(y[i+1])
		);
	end endgenerate
endmodule

// A product: the rows of its lower half and those of its upper half, added. A row is the wider factor and a bit of the
// narrower one; rows go into the addition as they are.
(* techmap_celltype = "$__soft_mul" *)
module soft_product (A, B, Y);
	parameter A_SIGNED = 0;
	parameter B_SIGNED = 0;
	parameter A_WIDTH = 1;
	parameter B_WIDTH = 1;
	parameter Y_WIDTH = 1;
	(* force_downto *)
	input [A_WIDTH-1:0] A;
	(* force_downto *)
	input [B_WIDTH-1:0] B;
	(* force_downto *)
	output [Y_WIDTH-1:0] Y;

	localparam SWAP = A_WIDTH < B_WIDTH;
	localparam M = SWAP ? B_WIDTH : A_WIDTH;
	localparam N = SWAP ? A_WIDTH : B_WIDTH;
	localparam M_SIGNED = SWAP ? B_SIGNED : A_SIGNED;
	localparam N_SIGNED = SWAP ? A_SIGNED : B_SIGNED;
	localparam LOW = N / 2;
	localparam HIGH = N - LOW;
	localparam WIDTH = M + HIGH; // of the sum, which leaves the lowest LOW bits out
	wire _TECHMAP_FAIL_ = N < 2;

	generate if (N >= 2) begin:split
		wire [M-1:0] wide;
		wire [N-1:0] narrow;
		if (SWAP) begin
			assign wide = B;
			assign narrow = A;
		end else begin
			assign wide = A;
			assign narrow = B;
		end
		wire wide_sign = M_SIGNED ? wide[M-1] : 1'b0;
		wire [M+N-1:0] low, low_use, product;
		wire [WIDTH-1:0] high, high_use;
		if (LOW == 1) begin
			assign low = {{N{wide_sign}}, wide};
			assign low_use = {(M + N){narrow[0]}};
		end else begin
			wire [M+LOW-1:0] part;
			\$__soft_mul #(
				.A_SIGNED(M_SIGNED), .B_SIGNED(0), .A_WIDTH(M), .B_WIDTH(LOW), .Y_WIDTH(M + LOW)
			) low_product (.A(wide), .B(narrow[LOW-1:0]), .Y(part));
			assign low = {{HIGH{M_SIGNED ? part[M+LOW-1] : 1'b0}}, part};
			assign low_use = {(M + N){1'b1}};
		end
		if (HIGH == 1) begin
			assign high = {wide_sign, wide};
			assign high_use = {WIDTH{narrow[N-1]}};
		end else begin
			\$__soft_mul #(
				.A_SIGNED(M_SIGNED), .B_SIGNED(N_SIGNED), .A_WIDTH(M), .B_WIDTH(HIGH), .Y_WIDTH(WIDTH)
			) high_product (.A(wide), .B(narrow[N-1:LOW]), .Y(high));
			assign high_use = {WIDTH{1'b1}};
		end
		assign product[LOW-1:0] = low[LOW-1:0] & low_use[LOW-1:0];
		\$__and_add #(.WIDTH(WIDTH), .SUBTRACT(N_SIGNED && HIGH == 1)) sum (
			.A(high), .B(high_use), .C(low[M+N-1:LOW]), .D(low_use[M+N-1:LOW]), .Y(product[M+N-1:LOW])
		);
		if (Y_WIDTH <= M + N)
			assign Y = product[Y_WIDTH-1:0];
		else
			assign Y = {{(Y_WIDTH - M - N){(M_SIGNED || N_SIGNED) ? product[M+N-1] : 1'b0}}, product};
	end endgenerate
endmodule

// A sum takes a carry chain even where it is one of several in a row, of which Yosys would make full adders of
// look-up tables: two of those for each bit.
(* techmap_celltype = "$add" *)
module chained_sum (A, B, Y);
	parameter A_SIGNED = 0;
	parameter B_SIGNED = 0;
	parameter A_WIDTH = 1;
	parameter B_WIDTH = 1;
	parameter Y_WIDTH = 1;
	(* force_downto *)
	input [A_WIDTH-1:0] A;
	(* force_downto *)
	input [B_WIDTH-1:0] B;
	(* force_downto *)
	output [Y_WIDTH-1:0] Y;

	wire [Y_WIDTH-1:0] half, carry;
	\$alu #(
		.A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(A_WIDTH), .B_WIDTH(B_WIDTH), .Y_WIDTH(Y_WIDTH)
	) _TECHMAP_REPLACE_ (.A(A), .B(B), .BI(1'b0), .CI(1'b0), .X(half), .Y(Y), .CO(carry));
endmodule
